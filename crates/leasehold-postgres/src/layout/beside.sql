-- What a store keeps beside leases: who wants them, letters, and the marks of resources.

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

-- Accepts a fence for a resource and remembers it, or refuses it: accepted, stale or never issued. What is below the mark is
-- stale, whatever was issued: after a restore the counter may be the one that lags.
CREATE FUNCTION @schema@.admit(p_resource text, p_lease text, p_fence bigint, p_remember boolean,
  OUT answer text, OUT highest bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
  issued bigint;
BEGIN
  SELECT m.fence INTO highest FROM @schema@.mark m WHERE m.resource = p_resource AND m.lease = p_lease;
  IF highest > p_fence THEN answer := 'stale'; RETURN; END IF;
  SELECT t.counter INTO issued FROM @schema@.lease t WHERE t.name = p_lease;
  IF issued IS NULL OR issued < p_fence THEN answer := 'never'; highest := issued; RETURN; END IF;
  IF p_remember AND highest IS DISTINCT FROM p_fence THEN
    INSERT INTO @schema@.mark AS m (resource, lease, fence) VALUES (p_resource, p_lease, p_fence)
      ON CONFLICT (resource, lease) DO UPDATE SET fence = greatest(m.fence, p_fence)
      RETURNING m.fence INTO highest;
  END IF;
  answer := CASE WHEN highest > p_fence THEN 'stale' ELSE 'accepted' END;
END$$;
