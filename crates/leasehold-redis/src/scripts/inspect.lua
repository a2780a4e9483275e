-- The state of a lease, as one string of seven lines: claim, its remaining ms, counter, term, fate, past, the
-- server's time in ms. A claim whose witness nobody hears has crashed.
--
-- KEYS: claim, fence. ARGV: perhaps the events channel, on which a crash is told to those who have not noticed it.

local claim = redis.pcall('GET', KEYS[1])
if type(claim) == 'table' then return {'damaged', KEYS[1], claim.err} end
local kept = redis.pcall('HMGET', KEYS[2], 'counter', 'term', 'fate', 'past')
if kept.err then return {'damaged', KEYS[2], kept.err} end
local counter, term, fate, past = unpack(kept)
local left = -2
local crashed = false
if claim then
  left = redis.call('PTTL', KEYS[1])
  local fence, attempt, replica, witness =
    string.match(claim, '^fence=(%d+) attempt=(%x+) replica=(%S+) witness=(%S+)')
  if witness and redis.call('PUBSUB', 'NUMSUB', witness)[2] == 0 then
    term = term or ('fence=' .. fence .. ' since=0 attempt=' .. attempt .. ' trace= replica=' .. replica)
    claim, left, fate, counter, crashed = '', -2, 'crashed', counter or fence, true
  end
end
local time = redis.call('TIME')
local state = (claim or '') .. '\n' .. left .. '\n' .. (counter or '') .. '\n' .. (term or '') .. '\n' .. (fate or '')
  .. '\n' .. (past or '') .. '\n' .. string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
if crashed and ARGV[1] then redis.pcall('PUBLISH', ARGV[1], state) end
return state
