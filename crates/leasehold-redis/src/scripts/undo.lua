-- undo.lua
-- Takes back a grant that does not count, as if it had never been: what the term before left behind waits for the next
-- one. Only the counter stays where it is, and the attempt is remembered as one that is spent.
--
-- KEYS: claim, fence. ARGV: the claim as it must be, events channel.
-- Answers 1, {'gone'} if something came between, or {'damaged', key, problem}.

local call, match, find = redis.call, string.match, string.find

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then return {'damaged', KEYS[1], value.err} end
local term = redis.pcall('HGET', KEYS[2], 'term')
if type(term) == 'table' then return {'damaged', KEYS[2], term.err} end

local expected = ARGV[1]
local lives = value == expected or value and string.sub(value, 1, #expected + 9) == expected .. ' witness='
local fence, attempt, replica = match(expected, '^fence=(%d+) attempt=(%x+) replica=(%S+)')
local undone = ' undone=' .. attempt
local fate = call('HGET', KEYS[2], 'fate') or ''
local begun = term and match(term, '^fence=' .. fence .. ' since=%d+ attempt=' .. attempt .. ' ') and fate == ''
if not begun or value and not lives then
  -- Done before, and only the answer was lost.
  if find(fate .. ' ', undone .. ' ', 1, true) then return 1 end
  -- A claim that stands without its term, which was lost or set back beside it: there is nothing to restore.
  if lives then
    call('DEL', KEYS[1])
    local counter = call('HGET', KEYS[2], 'counter') or '0'
    if match(counter, '^%d+$') and (#counter < #fence or #counter == #fence and counter < fence) then
      call('HSET', KEYS[2], 'counter', fence)
    end
  end
  return {'gone'}
end

local past = call('HGET', KEYS[2], 'past') or ''
local before
fate, before = match(past, '^(.-) (fence=.*)$')
-- Without a term before this one there is but what was undone.
if not fate then fate, before = past ~= '' and past or 'none', '' end
-- The last two: an attempt is remembered until two further terms have begun.
local latest = match(fate, ' undone=%x+')
fate = string.gsub(fate, ' undone=%x+', '') .. undone .. (latest or '')

-- First what needs no memory: whatever is refused behind it, the term has ended, and behind it a full server takes the rest.
call('DEL', KEYS[1])
call('HSET', KEYS[2], 'term', before, 'fate', fate, 'past', '')
local claim, left = '', '-2'
local till = match(term, ' kept=(%d+) ')
if till then
  local time = call('TIME')
  left = till - time[1] * 1000 - math.floor(time[2] / 1000)
  if left > 0 then
    claim, left = 'heir=' .. replica .. ' fence=' .. fence, string.format('%.0f', left)
    call('SET', KEYS[1], claim, 'PX', left)
  else
    left = '-2'
  end
end
redis.pcall('PUBLISH', ARGV[2], claim .. '\n' .. left .. '\n' .. fence .. '\n' .. before .. '\n' .. fate .. '\n\n0')
return 1
