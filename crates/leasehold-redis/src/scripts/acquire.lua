-- Asks for a lease. The record and the fence of a new term are one step, as is everything in a script.
--
-- KEYS: claim, fence.
-- ARGV: attempt, replica, ttl in ms, floor or '', witness channel or '', trace or '', events channel.

local LAST = 9007199254740991 -- 2^53 - 1: up to here a Lua number is exact

local claim = redis.pcall('GET', KEYS[1])
if type(claim) == 'table' then return {'damaged', KEYS[1], claim.err} end
local kept = redis.pcall('HMGET', KEYS[2], 'counter', 'term', 'fate', 'past', 'note_of', 'note_to')
if kept.err then return {'damaged', KEYS[2], kept.err} end
local counter, term, fate, past, note_of, note_to = unpack(kept)

local highest = 0
if counter then
  highest = tonumber(counter) or 0
  -- As a fence is written, and in no other way: 12, not 12.0, 1e1 or 0xc.
  if highest < 1 or highest > LAST or string.find(counter, '%D') then
    return {'damaged', KEYS[2], 'its counter is no fence'}
  end
end
if term and string.sub(term, 1, 6) ~= 'fence=' then return {'damaged', KEYS[2], 'its term cannot be read'} end

if claim then
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 then return {'damaged', KEYS[1], 'it has no expiry'} end
  local heir = string.match(claim, '^heir=(%S+)$')
  if heir then
    if heir ~= ARGV[2] then return {'held', heir, counter or '1', left, 1} end
  else
    local fence, attempt, replica = string.match(claim, '^fence=([1-9]%d*) attempt=(%x+) replica=(%S+)')
    if not fence or #fence > 16 or tonumber(fence) > LAST then
      return {'damaged', KEYS[1], 'its value cannot be read'}
    end
    if attempt == ARGV[1] then
      redis.call('PEXPIRE', KEYS[1], ARGV[3])
      local note = note_to == fence and redis.call('HGET', KEYS[2], 'note')
      return {'granted', fence, past or '', note, note_of}
    end
    local witness = string.match(claim, ' witness=(%S+)')
    if not witness or redis.call('PUBSUB', 'NUMSUB', witness)[2] > 0 then
      return {'held', replica, fence, left, 0}
    end
    -- The holder's process has ended: nobody hears its witness.
    fate = 'crashed'
    highest = math.max(highest, tonumber(fence))
    term = term or ('fence=' .. fence .. ' since=0 attempt=' .. attempt .. ' trace= replica=' .. replica)
  end
end

-- A request that was on its way for longer than its own term lasted must not begin another one.
local attempt = ' attempt=' .. ARGV[1]
if (term and string.find(term, attempt, 1, true)) or (past and string.find(past, attempt, 1, true)) then
  return {'spent'}
end

if ARGV[4] ~= '' then highest = math.max(highest, tonumber(ARGV[4])) end
if highest >= LAST then return {'exhausted', string.format('%.0f', highest)} end
local fence = string.format('%.0f', highest + 1)

-- The first write is one that a full server refuses, so that it refuses all of them.
claim = 'fence=' .. fence .. ' attempt=' .. ARGV[1] .. ' replica=' .. ARGV[2]
if ARGV[5] ~= '' then claim = claim .. ' witness=' .. ARGV[5] end
redis.call('SET', KEYS[1], claim, 'PX', ARGV[3])

local time = redis.call('TIME')
-- Seconds, and the first three of six digits behind them.
local now = time[1] .. string.sub(time[2] + 1000000, 2, 4)
if term then
  if not fate or fate == '' then fate = 'expired' end
  past = fate .. ' ' .. term
else
  past = ''
end
term = 'fence=' .. fence .. ' since=' .. now .. ' attempt=' .. ARGV[1] .. ' trace=' .. ARGV[6] .. ' replica=' .. ARGV[2]
redis.call('HSET', KEYS[2], 'counter', fence, 'term', term, 'fate', '', 'past', past)

local note = false
if note_of then
  if note_to == '' then
    note = redis.call('HGET', KEYS[2], 'note')
    redis.call('HSET', KEYS[2], 'note_to', fence)
  else
    redis.call('HDEL', KEYS[2], 'note', 'note_of', 'note_to')
  end
end

redis.call('PUBLISH', ARGV[7],
  claim .. '\n' .. ARGV[3] .. '\n' .. fence .. '\n' .. term .. '\n\n' .. past .. '\n' .. now)
return {'granted', fence, past, note, note_of}
