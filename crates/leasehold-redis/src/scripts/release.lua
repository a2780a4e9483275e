-- release.lua
-- Ends a claim, if it is the one that lives.
--
-- KEYS: claim, fence.
-- ARGV: the claim as it must be, or '' for whichever lives; how it ends; events channel; then perhaps heir or '', the
-- heir's window in ms, and a note.
-- Answers 1, or {'ended', fence, replica} where any claim was meant, {'gone', holder, its fence, counter} or
-- {'damaged', key, problem}.

local LAST = 9007199254740991 -- 2^53 - 1: up to here a Lua number is exact
local call, match = redis.call, string.match

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then return {'damaged', KEYS[1], value.err} end
local term = redis.pcall('HGET', KEYS[2], 'term')
if type(term) == 'table' then return {'damaged', KEYS[2], term.err} end

local expected, fate = ARGV[1], ARGV[2]
local fence, attempt, replica = match(value or '', '^fence=([1-9]%d*) attempt=(%x+) replica=(%S+)')
if fence and (#fence > 16 or tonumber(fence) > LAST) or value and not fence and not match(value, '^heir=%S+') then
  return {'damaged', KEYS[1], 'its value cannot be read'}
end
if not fence or value ~= expected and expected ~= ''
  and string.sub(value, 1, #expected + 9) ~= expected .. ' witness=' then
  return {'gone', replica or '', fence or '', call('HGET', KEYS[2], 'counter') or ''}
end

-- A full server refuses what needs memory, until a script has made some room: this comes first.
call('DEL', KEYS[1])
local claim, left = '', '-2'
if ARGV[4] and ARGV[4] ~= '' then
  claim, left = 'heir=' .. ARGV[4], ARGV[5]
  call('SET', KEYS[1], claim, 'PX', left)
end
call('HSET', KEYS[2], 'fate', fate)
if not term then
  -- It was lost under a claim that lived on: its fence is then the highest there is.
  term = 'fence=' .. fence .. ' since=0 attempt=' .. attempt .. ' trace= replica=' .. replica
  call('HSET', KEYS[2], 'counter', fence, 'term', term)
end
if ARGV[6] then
  call('HSET', KEYS[2], 'note', ARGV[6])
elseif string.find(term, ' note=', 1, true) then
  call('HDEL', KEYS[2], 'note')
end
-- Whoever may not publish has let go all the same.
redis.pcall('PUBLISH', ARGV[3], claim .. '\n' .. left .. '\n' .. fence .. '\n' .. term .. '\n' .. fate .. '\n\n0')
if expected == '' then return {'ended', fence, replica} end
return 1
