-- What is asked about leases. Each is called by one statement of its own, which is its transaction.

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
  -- Most that are granted find a vacancy that is nobody's, without a note: one statement, which nothing needs to be said to.
  -- It locks nothing where it does not fit, and then all is looked at below.
  UPDATE @schema@.lease t
    SET counter = greatest(t.counter, p_floor) + 1, replica = p_replica, attempt = p_attempt, since = clock_timestamp(),
      until = clock_timestamp() + p_ttl * interval '1 microsecond', trace = p_trace, witness = p_witness
    WHERE t.name = p_name AND t.attempt IS NULL AND t.heir IS NULL AND t.noted IS NULL
      AND greatest(t.counter, p_floor) < 9007199254740991
      AND (p_attempt IN (t.past_attempt, t.older_attempt)) IS NOT TRUE AND @schema@.problem(t) IS NULL
    RETURNING t.counter, t.fate, t.past_fence, t.past_replica, t.past_trace, t.forced_by, t.forced_why
    INTO fence, fate, past_fence, past_replica, past_trace, forced_by, forced_why;
  IF FOUND THEN
    PERFORM @schema@.tell(p_name);
    answer := 'granted';
    RETURN;
  END IF;
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
  -- Most leave neither an heir nor a note, and found none: one statement. All others are looked at below.
  IF p_heir IS NULL AND p_note IS NULL THEN
    UPDATE @schema@.lease t
      SET fate = 'released', past_fence = t.counter, past_replica = t.replica, older_attempt = t.past_attempt,
        past_attempt = t.attempt, past_trace = coalesce(p_trace, t.trace), forced_by = NULL, forced_why = NULL,
        replica = NULL, attempt = NULL, since = NULL, until = NULL, trace = NULL, witness = NULL
      WHERE t.name = p_name AND t.replica = p_replica AND t.attempt = p_attempt AND t.counter = p_fence
        AND t.until > clock_timestamp() AND t.heir IS NULL AND t.noted IS NULL AND @schema@.problem(t) IS NULL;
    IF FOUND THEN
      PERFORM @schema@.tell(p_name);
      answer := 'released';
      RETURN;
    END IF;
  END IF;
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
    SELECT (u.l).name, u.l, @schema@.problem(u.l) AS problem, clock_timestamp() AS at FROM (
      -- Apart, so that both find their rows by the index.
      SELECT a AS l FROM @schema@.lease a WHERE a.name = ANY (p_names)
      UNION ALL
      SELECT b FROM @schema@.lease b WHERE p_names IS NULL AND b.name >= p_prefix AND starts_with(b.name, p_prefix)
    ) u
    OFFSET 0
  ) t
  LEFT JOIN LATERAL (SELECT (st).* FROM (SELECT @schema@.standing(t.l, t.at) AS st OFFSET 0) one WHERE t.problem IS NULL) s
    ON true
  ORDER BY t.name
$$;
