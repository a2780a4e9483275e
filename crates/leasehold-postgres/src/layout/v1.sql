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

  noted         bigint,            -- the fence under which the note in table note was written; NULL if there is none

  CONSTRAINT fences_are_exact CHECK (counter BETWEEN 1 AND 9007199254740991
    AND (past_fence IS NULL OR past_fence BETWEEN 1 AND 9007199254740991)),
  CONSTRAINT a_term_is_whole CHECK (num_nulls(replica, attempt, since, until) IN (0, 4)),
  CONSTRAINT an_heir_has_a_window CHECK (num_nulls(heir, heir_until) IN (0, 2)),
  CONSTRAINT a_past_is_whole CHECK (num_nulls(fate, past_fence, past_replica, past_attempt) IN (0, 4)),
  CONSTRAINT a_fate_is_known CHECK (fate IN ('released', 'handed-off', 'expired', 'crashed', 'forced'))
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

CREATE FUNCTION @schema@.version() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT version FROM @schema@.layout';

-- The channel on which news of a kind ('lease', 'mail') about a name is told. A name may be longer than a channel's.
CREATE FUNCTION @schema@.channel(kind text, name text) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$SELECT 'lh_' || left(encode(sha256(convert_to('@plain@:' || kind || ':' || name, 'UTF8')), 'hex'), 40)$$;

CREATE FUNCTION @schema@.tell(name text) RETURNS void
LANGUAGE sql
AS $$SELECT pg_notify('@all@', name), pg_notify(@schema@.channel('lease', name), name)$$;

-- What is wrong with a row; NULL if nothing is. Whatever does not fit what we write is damage, and stays as it is.
CREATE FUNCTION @schema@.problem(l @schema@.lease) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$SELECT CASE
  WHEN l.counter NOT BETWEEN 1 AND 9007199254740991 THEN 'counter is no fence'
  WHEN num_nulls(l.replica, l.attempt, l.since, l.until) NOT IN (0, 4) THEN 'its term is not whole'
  WHEN octet_length(l.attempt) <> 16 THEN 'attempt has not 16 bytes'
  WHEN octet_length(l.replica) NOT BETWEEN 1 AND 200 THEN 'replica is no replica id'
  WHEN l.replica IS NULL AND num_nonnulls(l.trace, l.witness) > 0 THEN 'trace or witness belongs to no term'
  WHEN num_nulls(l.heir, l.heir_until) NOT IN (0, 2) THEN 'its heir is not whole'
  WHEN l.heir IS NOT NULL AND l.replica IS NOT NULL THEN 'it is held, and kept for an heir'
  WHEN num_nulls(l.fate, l.past_fence, l.past_replica, l.past_attempt) NOT IN (0, 4) THEN 'its past is not whole'
  WHEN l.fate NOT IN ('released', 'handed-off', 'expired', 'crashed', 'forced') THEN 'fate is no fate'
  WHEN l.past_fence NOT BETWEEN 1 AND 9007199254740991 THEN 'past_fence is no fence'
  WHEN octet_length(l.past_attempt) <> 16 OR octet_length(l.older_attempt) <> 16 THEN 'a past attempt has not 16 bytes'
  WHEN l.fate = 'forced' AND num_nulls(l.forced_by, l.forced_why) > 0 THEN 'who forced it, or why, is missing'
END$$;

-- Ends the term of a row that has one.
CREATE FUNCTION @schema@.ended(l @schema@.lease, fate text, trace text) RETURNS @schema@.lease
LANGUAGE plpgsql
AS $$
BEGIN
  l.fate := ended.fate;
  l.past_fence := l.counter;
  l.past_replica := l.replica;
  l.older_attempt := l.past_attempt;
  l.past_attempt := l.attempt;
  l.past_trace := coalesce(ended.trace, l.trace);
  l.forced_by := NULL; l.forced_why := NULL;
  l.replica := NULL; l.attempt := NULL; l.since := NULL; l.until := NULL; l.trace := NULL; l.witness := NULL;
  RETURN l;
END$$;

-- Whether nobody holds the lock of a witness: the process has ended, or has lost its connection.
CREATE FUNCTION @schema@.silent(witness bigint) RETURNS boolean
LANGUAGE sql
AS 'SELECT pg_try_advisory_xact_lock_shared(witness)';

-- A row after whatever ended by itself is ended.
CREATE FUNCTION @schema@.standing(l @schema@.lease, at timestamptz) RETURNS @schema@.lease
LANGUAGE plpgsql
AS $$
BEGIN
  IF l.until <= at THEN
    l := @schema@.ended(l, 'expired', NULL);
  ELSIF l.witness IS NOT NULL AND @schema@.silent(l.witness) THEN
    l := @schema@.ended(l, 'crashed', NULL);
  END IF;
  IF l.heir_until <= at THEN
    l.heir := NULL; l.heir_until := NULL;
  END IF;
  RETURN l;
END$$;

-- Writes what has changed hands, and tells it.
CREATE FUNCTION @schema@.save(l @schema@.lease) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE @schema@.lease t SET
    counter = l.counter, replica = l.replica, attempt = l.attempt, since = l.since, until = l.until, trace = l.trace,
    witness = l.witness, heir = l.heir, heir_until = l.heir_until, fate = l.fate, past_fence = l.past_fence,
    past_replica = l.past_replica, past_attempt = l.past_attempt, older_attempt = l.older_attempt,
    past_trace = l.past_trace, forced_by = l.forced_by, forced_why = l.forced_why, noted = l.noted
  WHERE t.name = l.name;
  PERFORM @schema@.tell(l.name);
END$$;

CREATE FUNCTION @schema@.micros(span interval) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS 'SELECT greatest(0, ceil(extract(epoch FROM span) * 1000000))::bigint';

CREATE FUNCTION @schema@.span(micros bigint) RETURNS interval
LANGUAGE sql IMMUTABLE
AS $$SELECT micros * interval '1 microsecond'$$;

-- Asks for a lease. The answer is granted, held, reserved, spent, exhausted or damaged.
CREATE FUNCTION @schema@.acquire(
  p_name text, p_replica text, p_attempt bytea, p_ttl bigint, p_floor bigint, p_witness bigint, p_trace text,
  OUT answer text, OUT fence bigint, OUT holder text, OUT micros bigint, OUT fate text, OUT past_fence bigint,
  OUT past_replica text, OUT past_trace text, OUT forced_by text, OUT forced_why text, OUT note bytea,
  OUT note_from bigint, OUT problem text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
  l @schema@.lease;
  at timestamptz;
  locked boolean := false;
BEGIN
  LOOP
    -- Most bids of a waiting crowd meet a living claim. They are answered without the row's lock, for which the
    -- holder's renewals would have to queue.
    IF locked THEN
      SELECT * INTO l FROM @schema@.lease t WHERE t.name = p_name FOR UPDATE;
    ELSE
      SELECT * INTO l FROM @schema@.lease t WHERE t.name = p_name;
    END IF;
    at := clock_timestamp();
    IF l.name IS NULL THEN
      fence := coalesce(p_floor, 0) + 1;
      IF fence > 9007199254740991 THEN answer := 'exhausted'; fence := p_floor; RETURN; END IF;
      INSERT INTO @schema@.lease (name, counter, replica, attempt, since, until, trace, witness)
        VALUES (p_name, fence, p_replica, p_attempt, at, at + @schema@.span(p_ttl), p_trace, p_witness)
        ON CONFLICT (name) DO NOTHING;
      IF FOUND THEN
        PERFORM @schema@.tell(p_name);
        answer := 'granted';
        RETURN;
      END IF;
      locked := true;
      CONTINUE;
    END IF;
    problem := @schema@.problem(l);
    IF problem IS NOT NULL THEN answer := 'damaged'; RETURN; END IF;
    l := @schema@.standing(l, at);
    IF l.attempt <> p_attempt THEN
      answer := 'held'; fence := l.counter; holder := l.replica; micros := @schema@.micros(l.until - at);
      RETURN;
    END IF;
    IF l.heir <> p_replica THEN
      answer := 'reserved'; fence := l.counter; holder := l.heir; micros := @schema@.micros(l.heir_until - at);
      RETURN;
    END IF;
    -- A request that was on its way for longer than its own term lasted must not begin another one.
    IF p_attempt IN (l.past_attempt, l.older_attempt) THEN answer := 'spent'; RETURN; END IF;
    fence := greatest(l.counter, p_floor);
    IF l.attempt IS NULL AND fence >= 9007199254740991 THEN answer := 'exhausted'; RETURN; END IF;
    EXIT WHEN locked;
    locked := true;
  END LOOP;

  answer := 'granted';
  fate := l.fate; past_fence := l.past_fence; past_replica := l.past_replica; past_trace := l.past_trace;
  forced_by := l.forced_by; forced_why := l.forced_why;
  IF l.attempt = p_attempt THEN
    -- The same attempt gets the same answer, and is extended as by a renewal.
    fence := l.counter;
    UPDATE @schema@.lease t SET until = at + @schema@.span(p_ttl) WHERE t.name = p_name;
    IF l.noted IS NOT NULL THEN
      SELECT n.bytes, n.written_under INTO note, note_from FROM @schema@.note n
        WHERE n.lease = p_name AND n.given_to = l.counter;
    END IF;
    RETURN;
  END IF;
  fence := fence + 1;
  IF l.noted IS NOT NULL THEN
    UPDATE @schema@.note n SET given_to = acquire.fence WHERE n.lease = p_name AND n.given_to IS NULL
      RETURNING n.bytes, n.written_under INTO note, note_from;
    IF NOT FOUND THEN
      -- It was given to a term before, which left none.
      DELETE FROM @schema@.note n WHERE n.lease = p_name;
      l.noted := NULL;
    END IF;
  END IF;
  l.counter := fence; l.replica := p_replica; l.attempt := p_attempt; l.since := at;
  l.until := at + @schema@.span(p_ttl); l.trace := p_trace; l.witness := p_witness;
  l.heir := NULL; l.heir_until := NULL;
  PERFORM @schema@.save(l);
END$$;

-- Renews claims: one answer for each, by its place: renewed, unwitnessed, over or damaged.
CREATE FUNCTION @schema@.renew(
  p_names text[], p_replicas text[], p_attempts bytea[], p_fences bigint[], p_ttls bigint[])
RETURNS TABLE (place bigint, answer text, holder text, fence bigint, highest bigint, problem text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
  at timestamptz;
BEGIN
  -- In one order for all, so that no two batches wait for each other.
  PERFORM 1 FROM @schema@.lease t WHERE t.name = ANY (p_names) ORDER BY t.name FOR UPDATE;
  at := clock_timestamp();
  RETURN QUERY
  WITH asked AS (
    SELECT * FROM unnest(p_names, p_replicas, p_attempts, p_fences, p_ttls)
      WITH ORDINALITY AS a(name, replica, attempt, fence, ttl, place)
  ), judged AS (
    SELECT a.place, a.name, a.ttl, l, p.problem,
      CASE
        WHEN p.problem IS NOT NULL THEN 'damaged'
        WHEN (l.replica = a.replica AND l.attempt = a.attempt AND l.counter = a.fence AND l.until > at) IS NOT TRUE
          THEN 'over'
        WHEN l.witness IS NOT NULL AND @schema@.silent(l.witness) THEN 'unwitnessed'
        ELSE 'renewed'
      END AS answer
    FROM asked a
      LEFT JOIN @schema@.lease l ON l.name = a.name
      LEFT JOIN LATERAL (SELECT @schema@.problem(l) WHERE l.name IS NOT NULL) AS p(problem) ON true
  ), extended AS (
    UPDATE @schema@.lease t SET until = at + @schema@.span(j.ttl) FROM judged j
      WHERE t.name = j.name AND j.answer = 'renewed'
  )
  SELECT j.place, j.answer, s.replica, CASE WHEN s.replica IS NOT NULL THEN s.counter END, (j.l).counter, j.problem
    FROM judged j
      LEFT JOIN LATERAL (SELECT (@schema@.standing(j.l, at)).* WHERE j.answer = 'over' AND (j.l).name IS NOT NULL) s ON true
    ORDER BY j.place;
END$$;

-- Ends a claim: released, over or damaged.
CREATE FUNCTION @schema@.release(
  p_name text, p_replica text, p_attempt bytea, p_fence bigint, p_heir text, p_window bigint, p_note bytea,
  p_note_from bigint, p_trace text,
  OUT answer text, OUT holder text, OUT fence bigint, OUT highest bigint, OUT problem text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
  l @schema@.lease;
  at timestamptz;
BEGIN
  SELECT * INTO l FROM @schema@.lease t WHERE t.name = p_name FOR UPDATE;
  at := clock_timestamp();
  IF l.name IS NULL THEN answer := 'over'; RETURN; END IF;
  problem := @schema@.problem(l);
  IF problem IS NOT NULL THEN answer := 'damaged'; RETURN; END IF;
  -- Whoever releases lives, whether its witness is seen or not.
  IF (l.replica = p_replica AND l.attempt = p_attempt AND l.counter = p_fence AND l.until > at) IS NOT TRUE THEN
    l := @schema@.standing(l, at);
    answer := 'over'; highest := l.counter; holder := l.replica;
    IF holder IS NOT NULL THEN fence := l.counter; END IF;
    RETURN;
  END IF;
  l := @schema@.ended(l, CASE WHEN p_heir IS NULL THEN 'released' ELSE 'handed-off' END, p_trace);
  IF p_heir IS NOT NULL THEN
    l.heir := p_heir; l.heir_until := at + @schema@.span(p_window);
  END IF;
  IF l.noted IS NOT NULL AND p_note IS NULL THEN
    DELETE FROM @schema@.note n WHERE n.lease = p_name;
  END IF;
  IF p_note IS NOT NULL THEN
    INSERT INTO @schema@.note AS n (lease, written_under, bytes) VALUES (p_name, p_note_from, p_note)
      ON CONFLICT (lease) DO UPDATE SET written_under = p_note_from, given_to = NULL, bytes = p_note;
  END IF;
  l.noted := CASE WHEN p_note IS NOT NULL THEN p_note_from END;
  PERFORM @schema@.save(l);
  answer := 'released';
END$$;

-- Ends whatever claim lives: forced, vacant or damaged. A reservation for an heir is no claim, and stays.
CREATE FUNCTION @schema@.force(
  p_name text, p_by text, p_why text, OUT answer text, OUT fence bigint, OUT holder text, OUT problem text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
  l @schema@.lease;
BEGIN
  answer := 'vacant';
  SELECT * INTO l FROM @schema@.lease t WHERE t.name = p_name FOR UPDATE;
  IF l.name IS NULL THEN RETURN; END IF;
  problem := @schema@.problem(l);
  IF problem IS NOT NULL THEN answer := 'damaged'; RETURN; END IF;
  l := @schema@.standing(l, clock_timestamp());
  IF l.replica IS NULL THEN RETURN; END IF;
  answer := 'forced'; fence := l.counter; holder := l.replica;
  l := @schema@.ended(l, 'forced', NULL);
  l.forced_by := p_by; l.forced_why := p_why;
  IF l.noted IS NOT NULL THEN
    DELETE FROM @schema@.note n WHERE n.lease = p_name;
    l.noted := NULL;
  END IF;
  PERFORM @schema@.save(l);
END$$;

-- Leases as they stand: those of these names, or, without names, all that begin so; by name.
CREATE FUNCTION @schema@.look(p_names text[], p_prefix text)
RETURNS TABLE (name text, problem text, counter bigint, replica text, attempt bytea, micros bigint, held_for bigint,
  witness bigint, heir text, heir_micros bigint, fate text, past_fence bigint, past_replica text, past_trace text,
  forced_by text, forced_why text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT t.name, t.problem, s.counter, s.replica, s.attempt, @schema@.micros(s.until - t.at),
    @schema@.micros(t.at - s.since), s.witness, s.heir, @schema@.micros(s.heir_until - t.at), s.fate, s.past_fence,
    s.past_replica, s.past_trace, s.forced_by, s.forced_why
  FROM (
    SELECT l.name, l, @schema@.problem(l) AS problem, clock_timestamp() AS at FROM @schema@.lease l
      WHERE CASE WHEN p_names IS NULL THEN starts_with(l.name, p_prefix) ELSE l.name = ANY (p_names) END
      OFFSET 0
  ) t
  LEFT JOIN LATERAL (SELECT (st).* FROM (SELECT @schema@.standing(t.l, t.at) AS st OFFSET 0) one WHERE t.problem IS NULL) s
    ON true
  ORDER BY t.name
$$;

-- Which of these witnesses nobody holds.
CREATE FUNCTION @schema@.silent_of(p_witnesses bigint[]) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT w FROM unnest(p_witnesses) AS w WHERE @schema@.silent(w)';

-- Enters or refreshes a candidacy. The first announcement fixes its place in the order.
CREATE FUNCTION @schema@.announce(p_lease text, p_id bytea, p_replica text, p_priority integer, p_ttl bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
  at timestamptz := clock_timestamp();
BEGIN
  UPDATE @schema@.candidate c SET until = at + @schema@.span(p_ttl), priority = p_priority, replica = p_replica
    WHERE c.lease = p_lease AND c.id = p_id AND c.until > at;
  IF FOUND THEN RETURN; END IF;
  -- Those that are over make room; whoever is busy with one of them removes it himself.
  DELETE FROM @schema@.candidate c WHERE c.joined IN (
    SELECT d.joined FROM @schema@.candidate d WHERE d.lease = p_lease AND d.until <= at FOR UPDATE SKIP LOCKED);
  INSERT INTO @schema@.candidate AS c (lease, id, replica, priority, until)
    VALUES (p_lease, p_id, p_replica, p_priority, at + @schema@.span(p_ttl))
    ON CONFLICT (lease, id) DO UPDATE SET until = excluded.until, priority = p_priority, replica = p_replica;
END$$;

CREATE FUNCTION @schema@.withdraw(p_lease text, p_id bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS 'DELETE FROM @schema@.candidate c WHERE c.lease = p_lease AND c.id = p_id';

CREATE FUNCTION @schema@.candidates(p_lease text)
RETURNS TABLE (joined bigint, id bytea, replica text, priority integer)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$SELECT c.joined, c.id, c.replica, c.priority FROM @schema@.candidate c
  WHERE c.lease = p_lease AND c.until > clock_timestamp()$$;

-- Sends a letter. The oldest make room for it, and those that are too old are dropped.
CREATE FUNCTION @schema@.post(
  p_inbox text, p_sender text, p_lease text, p_kind text, p_body bytea, p_trace text, p_most integer, p_age bigint)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
BEGIN
  DELETE FROM @schema@.letter g WHERE g.number IN (
    SELECT d.number FROM (
      SELECT n.number, n.posted, row_number() OVER (ORDER BY n.number DESC) AS place
        FROM @schema@.letter n WHERE n.inbox = p_inbox
    ) d WHERE d.place >= p_most OR d.posted < clock_timestamp() - @schema@.span(p_age));
  INSERT INTO @schema@.letter (inbox, sender, lease, kind, body, trace, posted)
    VALUES (p_inbox, p_sender, p_lease, p_kind, p_body, p_trace, clock_timestamp());
  PERFORM pg_notify(@schema@.channel('mail', p_inbox), '');
END$$;

-- Takes letters out of an inbox, the oldest first, as many as fit in a portion. Those that are too old are not told.
CREATE FUNCTION @schema@.drain(p_inbox text, p_portion integer, p_age bigint)
RETURNS TABLE (number bigint, sender text, lease text, kind text, body bytea, trace text, fresh boolean)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
  WITH taken AS (
    DELETE FROM @schema@.letter t WHERE t.number IN (
      SELECT n.number FROM @schema@.letter n WHERE n.inbox = p_inbox
        ORDER BY n.number LIMIT p_portion FOR UPDATE SKIP LOCKED)
    RETURNING t.*
  )
  SELECT g.number, g.sender, g.lease, g.kind, g.body, g.trace, g.posted >= clock_timestamp() - @schema@.span(p_age)
    FROM taken g ORDER BY g.number
$$;

-- Accepts a fence for a resource and remembers it, or refuses it: accepted, stale or never issued.
CREATE FUNCTION @schema@.admit(p_resource text, p_lease text, p_fence bigint, p_remember boolean,
  OUT answer text, OUT highest bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
BEGIN
  SELECT t.counter INTO highest FROM @schema@.lease t WHERE t.name = p_lease;
  IF highest IS NULL OR highest < p_fence THEN answer := 'never'; RETURN; END IF;
  SELECT m.fence INTO highest FROM @schema@.mark m WHERE m.resource = p_resource AND m.lease = p_lease;
  IF p_remember AND (highest IS NULL OR highest < p_fence) THEN
    INSERT INTO @schema@.mark AS m (resource, lease, fence) VALUES (p_resource, p_lease, p_fence)
      ON CONFLICT (resource, lease) DO UPDATE SET fence = greatest(m.fence, p_fence)
      RETURNING m.fence INTO highest;
  END IF;
  answer := CASE WHEN highest > p_fence THEN 'stale' ELSE 'accepted' END;
END$$;

REVOKE ALL ON SCHEMA @schema@ FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @schema@ FROM PUBLIC;
