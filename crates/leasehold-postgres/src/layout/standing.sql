-- How a lease stands: what the functions for leases are made of.

CREATE FUNCTION @schema@.version() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT version FROM @schema@.layout';

-- The channel on which news of a kind ('lease', 'mail') about a name is told. A name may be longer than a channel's.
CREATE FUNCTION @schema@.channel(kind text, name text) RETURNS text
LANGUAGE sql STABLE
AS $$SELECT 'lh_' || left(encode(sha256(convert_to('@plain@:' || kind || ':' || name, 'UTF8')), 'hex'), 40)$$;

-- In PL/pgSQL, which keeps its plan.
CREATE FUNCTION @schema@.tell(name text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_notify('@all@', name), pg_notify(@schema@.channel('lease', name), name);
END$$;

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

-- Which of these witnesses nobody holds.
CREATE FUNCTION @schema@.silent_of(p_witnesses bigint[]) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT w FROM unnest(p_witnesses) AS w WHERE @schema@.silent(w)';
