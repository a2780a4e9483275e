-- The layout of a leasehold store, version 1.
--
-- Times are nanoseconds of the host's boot clock and mean something only together with the boot id beside them.
-- STRICT, so that SQLite itself refuses a value of a wrong type, whoever writes it.

PRAGMA application_id = 0x4C656173; -- "Leas"
PRAGMA user_version = 1;

-- One row per name that was ever held. It is never removed: the counter outlives every term.
CREATE TABLE lease (
  name        TEXT    NOT NULL PRIMARY KEY,
  counter     INTEGER NOT NULL, -- the highest fence issued; while somebody holds the lease, his fence
  turn        INTEGER NOT NULL, -- grows with each change of hands, so that watchers read only what is new

  -- The present term; all NULL while there is none.
  replica     TEXT,
  attempt     BLOB,             -- 16 bytes
  boot        TEXT,
  since       INTEGER,
  until       INTEGER,          -- the only column that a renewal touches
  trace       TEXT,             -- may be NULL in a term too
  witness     TEXT,             -- the file whose lock falls with the holder's process; may be NULL in a term too

  -- For whom the vacancy is kept; all NULL if for nobody.
  heir        TEXT,
  heir_boot   TEXT,
  heir_until  INTEGER,

  -- How the term before ended; all NULL if there was none.
  fate        TEXT,             -- released, handed-off, expired, crashed, forced
  past_fence  INTEGER,
  past_replica TEXT,
  past_attempt BLOB,            -- 16 bytes: the attempt is spent, and never granted again
  older_attempt BLOB,           -- the same of the term before that one; NULL if there was none
  past_trace  TEXT,
  forced_by   TEXT,             -- with fate 'forced' only
  forced_why  TEXT
) STRICT;
CREATE INDEX lease_by_turn ON lease (turn);
CREATE INDEX lease_by_witness ON lease (witness) WHERE witness IS NOT NULL;

-- The note for the next term, or the one that the present term was given. Beside the lease, not in it: a renewal
-- rewrites the lease's page, and a note may fill sixty pages.
CREATE TABLE note (
  lease       TEXT    NOT NULL PRIMARY KEY,
  written_under INTEGER NOT NULL,
  given_to    INTEGER,          -- the fence of the term that got it; NULL until one has
  bytes       BLOB    NOT NULL
) STRICT;

-- The roster. `joined` never repeats, so that a place in the order is not inherited.
CREATE TABLE candidate (
  joined      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  lease       TEXT    NOT NULL,
  id          BLOB    NOT NULL, -- 16 bytes
  replica     TEXT    NOT NULL,
  priority    INTEGER NOT NULL,
  boot        TEXT    NOT NULL,
  until       INTEGER NOT NULL,
  UNIQUE (lease, id)
) STRICT;

-- Letters that nobody has read. Reading removes them.
CREATE TABLE letter (
  number      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  inbox       TEXT    NOT NULL,
  sender      TEXT    NOT NULL,
  lease       TEXT    NOT NULL,
  kind        TEXT    NOT NULL,
  body        BLOB    NOT NULL,
  trace       TEXT,
  boot        TEXT    NOT NULL,
  posted      INTEGER NOT NULL
) STRICT;
CREATE INDEX letter_by_inbox ON letter (inbox, number);

-- The marks of fenced resources. `number` names the lock file of the gate.
CREATE TABLE gate (
  number      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  resource    TEXT    NOT NULL,
  lease       TEXT    NOT NULL,
  highest     INTEGER,          -- NULL until a fence was admitted
  UNIQUE (resource, lease)
) STRICT;
