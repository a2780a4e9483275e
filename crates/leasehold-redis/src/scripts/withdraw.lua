-- Removes a candidacy.
--
-- KEYS: roster, and when each of its candidacies ends. ARGV: id.

redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return {'withdrawn'}
