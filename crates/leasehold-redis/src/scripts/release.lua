-- release.lua
-- Ends a claim, if it is the one that lives.
--
-- KEYS: claim, fence.
-- ARGV: the claim as it must be, or '' for whichever lives; how it ends, and by which request; events channel; then
-- perhaps heir or '', the heir's window in ms, and a note.
-- Answers 1, or {'ended', fence, replica} where any claim was meant, {'gone', holder, its fence, counter, last
-- term's fence} or {'damaged', key, problem}.

local LAST = 9007199254740991 -- 2^53 - 1: up to here a Lua number is exact
local call, match = redis.call, string.match

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then return {'damaged', KEYS[1], value.err} end
local term = redis.pcall('HGET', KEYS[2], 'term')
if type(term) == 'table' then return {'damaged', KEYS[2], term.err} end

local expected, fate = ARGV[1], ARGV[2]
local fence, attempt, replica = match(value or '', '^fence=([1-9]%d*) attempt=(%x+) replica=(%S+)')
if fence and (#fence > 16 or tonumber(fence) > LAST) or value and not fence and not match(value, '^heir=%S+ fence=%d+$') then
  return {'damaged', KEYS[1], 'its value cannot be read'}
end
if not fence or value ~= expected and expected ~= ''
  and string.sub(value, 1, #expected + 9) ~= expected .. ' witness=' then
  -- The fate names the request that wrote it: was it this one, of which only the answer was lost?
  local kept = term and call('HGET', KEYS[2], 'fate') or ''
  if kept == fate or string.sub(kept, 1, #fate + 8) == fate .. ' undone=' then
    if expected ~= '' then return 1 end
    return {'ended', match(term, '^fence=(%d+)') or '', match(term, ' replica=(%S+)') or ''}
  end
  local last = match(term or '', '^fence=(%d+) ') or match(value or '', '^heir=%S+ fence=(%d+)$')
  return {'gone', replica or '', fence or '', call('HGET', KEYS[2], 'counter') or '', last or ''}
end

local function number(text)
  local known = text and #text <= 16 and match(text, '^[1-9]%d*$') and tonumber(text)
  return known and known <= LAST and known
end

local fields = {'fate', fate}
local function keep(field, text)
  fields[#fields + 1] = field
  fields[#fields + 1] = text
end
if number(match(term or '', '^fence=(%d+) ')) ~= tonumber(fence) then
  -- It was lost, or set back, under a claim that lived on.
  term = 'fence=' .. fence .. ' since=0 attempt=' .. attempt .. ' trace= replica=' .. replica
  keep('term', term)
end
-- So was perhaps the counter. One that cannot be read is not ours to mend.
local counter = call('HGET', KEYS[2], 'counter')
if not counter or (number(counter) or LAST) < tonumber(fence) then keep('counter', fence) end

local claim, left = '', '-2'
if ARGV[4] and ARGV[4] ~= '' then claim, left = 'heir=' .. ARGV[4] .. ' fence=' .. fence, ARGV[5] end

-- What a user may have no right to comes first, as long as nothing is changed that could not be changed back. A full
-- server refuses whatever needs memory until a script has made some room: there the claim goes first.
local kept = redis.pcall('HSET', KEYS[2], unpack(fields))
local full = type(kept) == 'table'
if full and not string.find(kept.err, 'OOM ', 1, true) then return kept end
local gone = redis.pcall('DEL', KEYS[1])
if type(gone) == 'table' then
  -- It lives on, as if nothing had been asked.
  if not full then call('HSET', KEYS[2], 'fate', '') end
  return gone
end
-- From here on the claim has ended, whatever else is refused.
if full then call('HSET', KEYS[2], unpack(fields)) end
if claim ~= '' then
  local reserved = redis.pcall('SET', KEYS[1], claim, 'PX', left)
  if reserved.err then claim, left = '', '-2' end
end
if ARGV[6] then
  call('HSET', KEYS[2], 'note', ARGV[6])
elseif string.find(term, ' note=', 1, true) then
  redis.pcall('HDEL', KEYS[2], 'note')
end
redis.pcall('PUBLISH', ARGV[3], claim .. '\n' .. left .. '\n' .. fence .. '\n' .. term .. '\n' .. fate .. '\n\n0')
if expected == '' then return {'ended', fence, replica} end
return 1
