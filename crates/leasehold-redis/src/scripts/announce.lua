-- Enters a candidacy, or refreshes it at its place.
--
-- KEYS: roster. ARGV: id, ttl in ms, priority, replica.

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
redis.call('HSET', KEYS[1], ARGV[1],
  'until=' .. till .. ' joined=' .. joined .. ' priority=' .. ARGV[3] .. ' replica=' .. ARGV[4])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if not old then
  -- Whoever comes sweeps a little, so that those who went without a word do not pile up.
  local some = redis.call('HSCAN', KEYS[1], '0', 'COUNT', 16)[2]
  for i = 1, #some, 2 do
    local over = string.match(some[i + 1], '^until=(%d+) ')
    if over and tonumber(over) <= now then redis.call('HDEL', KEYS[1], some[i]) end
  end
end
return {'announced'}
