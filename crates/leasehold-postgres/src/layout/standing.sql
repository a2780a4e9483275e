-- How a lease stands: what the functions for leases are made of.

CREATE FUNCTION @schema@.version() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT version FROM @schema@.layout';

-- The channel on which news of a kind ('lease', 'mail') about a name is told. A name may be longer than a channel's.
CREATE FUNCTION @schema@.channel(kind text, name text) RETURNS text
LANGUAGE sql STABLE
AS $$SELECT 'lh_' || left(encode(sha256(convert_to('@plain@:' || kind || ':' || name, 'UTF8')), 'hex'), 40)$$;

-- Tells news of a lease, if anybody listens. Whoever listens to a channel holds the lock of its ears shared, from before he
-- listens and so before he reads what happened: who gets that lock alone commits before the next listener begins, who reads it
-- then. A notification that nobody hears is not free: it costs as much as the change, and commits of those that notify
-- follow one another. In PL/pgSQL, which keeps its plan.
CREATE FUNCTION @schema@.tell(name text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
  channel CONSTANT text := @schema@.channel('lease', name);
BEGIN
  IF NOT pg_try_advisory_xact_lock(@ears@::bigint + ('x' || substr(channel, 4, 2))::bit(8)::integer % @ears_count@) THEN
    PERFORM pg_notify('@all@', name), pg_notify(channel, name);
  END IF;
END$$;

-- What is wrong with a row; NULL if nothing is. Whatever does not fit what we write is damage, and stays as it is.
CREATE FUNCTION @schema@.problem(l @schema@.lease) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$SELECT CASE
  WHEN l.counter NOT BETWEEN 1 AND 9007199254740991 THEN 'counter is no fence'
  WHEN (l.replica IS NULL) <> (l.attempt IS NULL) OR (l.replica IS NULL) <> (l.since IS NULL)
    OR (l.replica IS NULL) <> (l.until IS NULL) THEN 'its term is not whole'
  WHEN octet_length(l.attempt) <> 16 THEN 'attempt has not 16 bytes'
  WHEN octet_length(l.replica) NOT BETWEEN 1 AND 200 THEN 'replica is no replica id'
  WHEN l.replica IS NULL AND (l.trace IS NOT NULL OR l.witness IS NOT NULL) THEN 'trace or witness belongs to no term'
  WHEN (l.heir IS NULL) <> (l.heir_until IS NULL) THEN 'its heir is not whole'
  WHEN l.heir IS NOT NULL AND l.replica IS NOT NULL THEN 'it is held, and kept for an heir'
  WHEN (l.fate IS NULL) <> (l.past_fence IS NULL) OR (l.fate IS NULL) <> (l.past_replica IS NULL)
    OR (l.fate IS NULL) <> (l.past_attempt IS NULL) THEN 'its past is not whole'
  WHEN l.fate NOT IN ('released', 'handed-off', 'expired', 'crashed', 'forced') THEN 'fate is no fate'
  WHEN l.past_fence NOT BETWEEN 1 AND 9007199254740991 THEN 'past_fence is no fence'
  WHEN octet_length(l.past_attempt) <> 16 OR octet_length(l.older_attempt) <> 16 THEN 'a past attempt has not 16 bytes'
  WHEN l.fate = 'forced' AND (l.forced_by IS NULL OR l.forced_why IS NULL) THEN 'who forced it, or why, is missing'
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

-- Which of these witnesses nobody holds.
CREATE FUNCTION @schema@.silent_of(p_witnesses bigint[]) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT w FROM unnest(p_witnesses) AS w WHERE @schema@.silent(w)';
