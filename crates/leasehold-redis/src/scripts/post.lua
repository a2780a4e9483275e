-- Puts a letter into an inbox and rings.
--
-- KEYS: mail. ARGV: letter, how many are kept, for how many ms, channel.

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('RPUSH', KEYS[1], 'posted=' .. now .. ' ' .. ARGV[1])
redis.call('LTRIM', KEYS[1], -ARGV[2], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', ARGV[4], '')
return {'posted'}
