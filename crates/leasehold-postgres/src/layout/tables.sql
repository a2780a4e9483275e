-- The layout of a leasehold store, version 1. For the text of another schema: `leasehold doctor --print-sql`.
--
-- Users of the store need USAGE of the schema and EXECUTE of its functions, and no right to its tables: the functions run
-- with the rights of whoever made them, and only they change a lease. All times are those of this server's clock.

CREATE TABLE @schema@.layout (
  one     boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL
);
INSERT INTO @schema@.layout (version) VALUES (1);

-- One row per name that was ever held. It is never removed: the counter outlives every term.
CREATE TABLE @schema@.lease (
  name          text COLLATE "C" NOT NULL PRIMARY KEY,
  counter       bigint NOT NULL,   -- the highest fence issued; while somebody holds the lease, his fence

  -- The present term; all NULL while there is none.
  replica       text,
  attempt       bytea,             -- 16 bytes
  since         timestamptz,
  until         timestamptz,       -- the only column that a renewal touches
  trace         text,              -- may be NULL in a term too
  witness       bigint,            -- the advisory lock that falls with the holder's process; may be NULL in a term too

  -- For whom the vacancy is kept; all NULL if for nobody.
  heir          text,
  heir_until    timestamptz,

  -- How the term before ended; all NULL if there was none.
  fate          text,
  past_fence    bigint,
  past_replica  text,
  past_attempt  bytea,             -- the attempt is spent, and never granted again
  older_attempt bytea,             -- the same of the term before that one; NULL if there was none
  past_trace    text,
  forced_by     text,              -- with fate 'forced' only
  forced_why    text,

  noted         bigint             -- the fence under which the note in table note was written; NULL if there is none

-- No constraint checks that a row is whole: the server would read its text anew for every change of a row, for a quarter of
-- the change's time. Each function looks before it changes anything, and says what is wrong: see function problem.
-- Half of each page is left free, so that a renewal finds room beside the version that it replaces.
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- The note for the next term, or the one that the present term was given. Not in the lease, which each renewal copies.
CREATE TABLE @schema@.note (
  lease         text COLLATE "C" NOT NULL PRIMARY KEY,
  written_under bigint NOT NULL,
  given_to      bigint,            -- the fence of the term that got it; NULL until one has
  bytes         bytea NOT NULL
);

-- The roster. `joined` never repeats, so that a place in the order is not inherited.
CREATE TABLE @schema@.candidate (
  joined        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lease         text COLLATE "C" NOT NULL,
  id            bytea NOT NULL,    -- 16 bytes
  replica       text NOT NULL,
  priority      integer NOT NULL,
  until         timestamptz NOT NULL,
  UNIQUE (lease, id)
) WITH (fillfactor = 50);

-- Letters that nobody has read. Reading removes them.
CREATE TABLE @schema@.letter (
  number        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  inbox         text COLLATE "C" NOT NULL,
  sender        text NOT NULL,
  lease         text NOT NULL,
  kind          text NOT NULL,
  body          bytea NOT NULL,
  trace         text,
  posted        timestamptz NOT NULL
);
CREATE INDEX letter_by_inbox ON @schema@.letter (inbox, number);

-- The marks of fenced resources: the highest fence of a lease that each has accepted. Never lowered.
CREATE TABLE @schema@.mark (
  resource      text COLLATE "C" NOT NULL,
  lease         text COLLATE "C" NOT NULL,
  fence         bigint NOT NULL CHECK (fence BETWEEN 1 AND 9007199254740991),
  PRIMARY KEY (resource, lease)
) WITH (fillfactor = 50);
