-- Ends a claim, if it is the one that lives.
--
-- KEYS: claim, fence.
-- ARGV: the claim as it must be, or '' for whichever lives; how it ends; events channel; heir or ''; the heir's window
-- in ms; 1 if there is a note, else 0; the note.
-- Answers {'ended', fence, replica}, {'gone', holder, its fence, counter} or {'damaged', key, problem}.

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then return {'damaged', KEYS[1], value.err} end
local kept = redis.pcall('HMGET', KEYS[2], 'counter', 'term', 'past', 'note_of')
if kept.err then return {'damaged', KEYS[2], kept.err} end
local counter, term, past, note_of = unpack(kept)

local fence, attempt, replica =
  string.match(value or '', '^fence=([1-9]%d*) attempt=(%x+) replica=(%S+)')
if value and not fence and not string.find(value, '^heir=%S+$') then
  return {'damaged', KEYS[1], 'its value cannot be read'}
end
local expected = ARGV[1]
local lives = fence and (expected == '' or value == expected
  or string.sub(value, 1, #expected + 9) == expected .. ' witness=')
if not lives then return {'gone', replica or '', fence or '', counter or ''} end

-- A full server refuses what needs memory, until a script has made some room: this comes first.
redis.call('DEL', KEYS[1])
local claim, left = '', '-2'
if ARGV[4] ~= '' then
  claim, left = 'heir=' .. ARGV[4], ARGV[5]
  redis.call('SET', KEYS[1], claim, 'PX', left)
end
-- The counter may have been lost under a claim that lived on: its fence is then the highest there is.
if not counter then counter = fence end
term = term or ('fence=' .. fence .. ' since=0 attempt=' .. attempt .. ' trace= replica=' .. replica)
if ARGV[6] == '1' then
  redis.call('HSET', KEYS[2], 'counter', counter, 'term', term, 'fate', ARGV[2],
    'note', ARGV[7], 'note_of', fence, 'note_to', '')
else
  redis.call('HSET', KEYS[2], 'counter', counter, 'term', term, 'fate', ARGV[2])
  if note_of then redis.call('HDEL', KEYS[2], 'note', 'note_of', 'note_to') end
end
redis.call('PUBLISH', ARGV[3],
  claim .. '\n' .. left .. '\n' .. counter .. '\n' .. term .. '\n' .. ARGV[2] .. '\n' .. (past or '') .. '\n0')
return {'ended', fence, replica}
