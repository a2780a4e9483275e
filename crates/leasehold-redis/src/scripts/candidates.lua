-- The candidacies that live: id and words of each.
--
-- KEYS: roster.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all = redis.call('HGETALL', KEYS[1])
local live = {'candidates'}
for i = 1, #all, 2 do
  local till = string.match(all[i + 1], '^until=(%d+) ')
  if not till then return {'damaged', KEYS[1], 'a candidacy cannot be read'} end
  if tonumber(till) > now then
    live[#live + 1] = all[i]
    live[#live + 1] = all[i + 1]
  end
end
return live
