-- Writes behind a fence, in the transaction that makes them. A stale one is an exception, not an answer: a transaction whose
-- author overlooks it cannot be committed.

-- Accepts a fence for a resource, or ends the transaction with LH001 (stale), LH003 (too far) or LH004 (no fence). Until the end
-- of the transaction nobody gets a higher one accepted: what it writes cannot follow what was written under that one.
CREATE FUNCTION @schema@.fenced(resource text, lease text, presented bigint, max_jump bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  highest bigint;
BEGIN
  IF presented IS NULL OR presented NOT BETWEEN 1 AND 9007199254740991 THEN
    RAISE EXCEPTION USING ERRCODE = 'LH004', DETAIL = coalesce(presented::text, 'none'),
      MESSAGE = format('%s is not a fence token: tokens are whole numbers from 1 to 9007199254740991',
        coalesce(presented::text, 'nothing'));
  END IF;
  LOOP
    SELECT m.fence INTO highest FROM @schema@.mark m WHERE m.resource = fenced.resource AND m.lease = fenced.lease;
    IF highest = presented THEN
      -- Shared: writes under one fence do not wait for each other, and a raise waits for all of them.
      PERFORM FROM @schema@.mark m
        WHERE m.resource = fenced.resource AND m.lease = fenced.lease AND m.fence = presented FOR SHARE;
      EXIT WHEN FOUND;
    ELSIF presented < highest THEN
      RAISE EXCEPTION USING ERRCODE = 'LH001', DETAIL = presented || ' ' || highest,
        MESSAGE = format('stale fence %s: resource %s has accepted %s; this holder''s lease is over, stop its work',
          presented, resource, highest);
    ELSIF presented - highest > max_jump THEN
      RAISE EXCEPTION USING ERRCODE = 'LH003', DETAIL = presented || ' ' || highest,
        MESSAGE = format('fence %s is more than %s above %s, the highest that resource %s has accepted',
          presented, max_jump, highest, resource);
    ELSIF highest IS NULL THEN
      INSERT INTO @schema@.mark VALUES (fenced.resource, fenced.lease, presented) ON CONFLICT DO NOTHING;
      EXIT WHEN FOUND;
    ELSE
      -- Not from a shared lock: two who held one would wait for each other.
      UPDATE @schema@.mark m SET fence = presented
        WHERE m.resource = fenced.resource AND m.lease = fenced.lease AND m.fence < presented;
      EXIT WHEN FOUND;
    END IF;
    -- Somebody raised it meanwhile: look again.
  END LOOP;
END$$;

-- For tables that others write: BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE … FOR EACH STATEMENT EXECUTE FUNCTION
-- guard(resource, lease [, setting]). The writer's fence is the transaction's setting leasehold.fence; without one there is no
-- write (LH002).
CREATE FUNCTION @schema@.guard() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  setting CONSTANT text := coalesce(TG_ARGV[2], 'leasehold.fence');
  presented CONSTANT text := coalesce(current_setting(setting, true), '');
BEGIN
  IF presented !~ '^[0-9]{1,16}$' THEN
    RAISE EXCEPTION USING ERRCODE = 'LH002', DETAIL = TG_ARGV[0],
      MESSAGE = format('%I.%I takes writes only under a fence of lease %s', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[1]),
      HINT = format('In the transaction of the write: SELECT set_config(%L, the fence, true)', setting);
  END IF;
  PERFORM @schema@.fenced(TG_ARGV[0], TG_ARGV[1], presented::bigint);
  RETURN NULL;
END$$;
