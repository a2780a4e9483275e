-- acquire.lua
-- Asks for a lease. The record and the fence of a new term are one step, as is everything in a script.
--
-- KEYS: claim, fence.
-- ARGV: attempt, replica, ttl in ms, events channel; then perhaps floor, witness channel and trace, '' for none.
-- Answers 'FENCE PAST' for a grant, {'granted', fence, past, note, note's fence} for one with a note, {'held', by,
-- fence, ms left, 1 if for an heir}, {'spent'}, {'unwitnessed'}, {'exhausted', highest}, {'damaged', key, problem}, or
-- {'unsure', problem} if not even a part of it could be taken back.

local LAST = 9007199254740991 -- 2^53 - 1: up to here a Lua number is exact
local call, match = redis.call, string.match

local function number(text)
  local value = #text <= 16 and match(text, '^[1-9]%d*$') and tonumber(text)
  return value and value <= LAST and value
end

local claim = redis.pcall('GET', KEYS[1])
if type(claim) == 'table' then return {'damaged', KEYS[1], claim.err} end
-- One field a call: HMGET costs more, for its answer is made into a table.
local counter = redis.pcall('HGET', KEYS[2], 'counter')
if type(counter) == 'table' then return {'damaged', KEYS[2], counter.err} end
local term = call('HGET', KEYS[2], 'term')
local fate = call('HGET', KEYS[2], 'fate')
-- Before the first term that was not undone there is none.
if term == '' then term = nil end
if not term and fate and not match(fate, '^none ') then fate = nil end

local highest = 0
if counter then
  highest = number(counter)
  if not highest then return {'damaged', KEYS[2], 'its counter is no fence'} end
end
if term then
  local fence = match(term, '^fence=(%d+) since=%d+ ')
  fence = fence and string.find(term, ' replica=', 1, true) and number(fence)
  if not fence then return {'damaged', KEYS[2], 'its term cannot be read'} end
  -- A counter that was set back: the term remembers.
  if fence > highest then highest = fence end
  local ended = not fate or fate == '' or match(fate, '^[%l-]+')
  if not (ended == true or ended == 'released' or ended == 'handed-off' or ended == 'crashed' or ended == 'forced'
      or ended == 'expired') then
    return {'damaged', KEYS[2], 'the end of its term cannot be read'}
  end
end

local reserved
if claim then
  local left = call('PTTL', KEYS[1])
  if left < 0 then return {'damaged', KEYS[1], 'it has no expiry'} end
  local heir, after = match(claim, '^heir=(%S+) fence=(%d+)$')
  if heir then
    local value = number(after)
    if not value then return {'damaged', KEYS[1], 'its value cannot be read'} end
    -- A counter that was lost, or set back: the reservation remembers.
    if value > highest then highest = value end
    reserved = left
    if heir ~= ARGV[2] then return {'held', heir, string.format('%.0f', highest), left, 1} end
  else
    local fence, attempt, replica = match(claim, '^fence=(%d+) attempt=(%x+) replica=(%S+)')
    local value = fence and number(fence)
    if not value then return {'damaged', KEYS[1], 'its value cannot be read'} end
    if attempt == ARGV[1] then
      call('PEXPIRE', KEYS[1], ARGV[3])
      local from = term and match(term, ' note=(%d+)')
      local past = call('HGET', KEYS[2], 'past') or ''
      return {'granted', fence, past, from and call('HGET', KEYS[2], 'note') or false, from or false}
    end
    local witness = match(claim, ' witness=(%S+)')
    if not witness or call('PUBSUB', 'NUMSUB', witness)[2] > 0 then return {'held', replica, fence, left, 0} end
    -- The holder's process has ended: nobody hears its witness.
    fate = 'crashed'
    if value > highest then highest = value end
    if not term or match(term, '^fence=(%d+) ') ~= fence then
      -- It was lost, or set back, under a claim that lived on.
      term = 'fence=' .. fence .. ' since=0 attempt=' .. attempt .. ' trace= replica=' .. replica
    end
  end
end

-- A request that was on its way for longer than its own term lasted must not begin another one; nor one that was undone.
local past = ''
if term or fate then
  past = fate and fate ~= '' and fate or 'expired'
  if term then past = past .. ' ' .. term end
  local known = past .. ' ' .. (call('HGET', KEYS[2], 'past') or '') .. ' '
  local mine = '=' .. ARGV[1] .. ' '
  if string.find(known, ' attempt' .. mine, 1, true) or string.find(known, ' undone' .. mine, 1, true) then
    return {'spent'}
  end
end

local witness = ARGV[6]
if witness == '' then witness = nil end
-- Behind a witness that nobody hears the claim would be taken at once by the next who asks.
if witness and call('PUBSUB', 'NUMSUB', witness)[2] == 0 then return {'unwitnessed'} end

local floor = ARGV[5]
if floor and floor ~= '' and tonumber(floor) > highest then highest = tonumber(floor) end
if highest >= LAST then return {'exhausted', string.format('%.0f', highest)} end
local fence = string.format('%.0f', highest + 1)
local time = call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6, -4)

local whose = ' attempt=' .. ARGV[1]
claim = 'fence=' .. fence .. whose .. ' replica=' .. ARGV[2]
if witness then claim = claim .. ' witness=' .. witness end
-- Given to this term, and to no later one.
local from = fate and match(fate, ' note=(%d+)')
local stale = not from and term and string.find(term, ' note=', 1, true)
if from then whose = whose .. ' note=' .. from end
-- The reservation that this term uses up, until when it would have stood: to restore it, if the grant is undone.
if reserved then whose = whose .. ' kept=' .. string.format('%.0f', now + reserved) end
term = 'fence=' .. fence .. ' since=' .. now .. whose .. ' trace=' .. (ARGV[7] or '') .. ' replica=' .. ARGV[2]

-- The first write is one that a full server refuses, so that it refuses all of them.
call('SET', KEYS[1], claim, 'PX', ARGV[3])
local kept = redis.pcall('HSET', KEYS[2], 'counter', fence, 'term', term, 'fate', '', 'past', past)
if type(kept) == 'table' then
  -- For want of a right: a claim without its fence is none.
  local gone = redis.pcall('DEL', KEYS[1])
  return type(gone) == 'table' and {'unsure', kept.err} or kept
end
-- Its fate does not name it any more: it would be no more than in the way.
if stale then redis.pcall('HDEL', KEYS[2], 'note') end
-- Whoever may not publish holds the lease all the same.
redis.pcall('PUBLISH', ARGV[4],
  claim .. '\n' .. ARGV[3] .. '\n' .. fence .. '\n' .. term .. '\n\n' .. past .. '\n' .. now)
if from then return {'granted', fence, past, call('HGET', KEYS[2], 'note'), from} end
return fence .. ' ' .. past
