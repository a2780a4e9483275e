-- Enters a candidacy, or refreshes it at its place.
--
-- KEYS: roster, and when each of its candidacies ends. ARGV: id, ttl in ms, priority, replica.

local SWEEP = 256 -- so many of the dead go with each call, so that no call takes long

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local joined = string.format('%.0f', time[1] * 1000000 + time[2])
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old then
  local till, place = string.match(old, '^until=(%d+) joined=(%d+) ')
  if not till then return {'damaged', KEYS[1], 'a candidacy cannot be read'} end
  if tonumber(till) > now then joined = place end
end
local till = string.format('%.0f', now + ARGV[2])
-- First: a candidacy whose end nobody knows would stay as long as others keep the roster.
redis.call('ZADD', KEYS[2], till, ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1],
  'until=' .. till .. ' joined=' .. joined .. ' priority=' .. ARGV[3] .. ' replica=' .. ARGV[4])
local dead = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, SWEEP)
if #dead > 0 then
  redis.call('HDEL', KEYS[1], unpack(dead))
  redis.call('ZREM', KEYS[2], unpack(dead))
end
for i = 1, 2 do
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
end
return {'announced'}
