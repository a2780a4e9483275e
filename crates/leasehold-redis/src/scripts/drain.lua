-- Takes the oldest letters out of an inbox: those not older than they may be.
--
-- KEYS: mail. ARGV: how many, how old in ms.
-- Answers {'letters', how many were taken, letter…}.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local letters = redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)
if #letters > 0 then redis.call('LTRIM', KEYS[1], #letters, -1) end
local answer = {'letters', #letters}
for _, letter in ipairs(letters) do
  local posted = string.match(letter, '^posted=(%d+) ')
  if posted and now - posted < tonumber(ARGV[2]) then answer[#answer + 1] = letter end
end
return answer
