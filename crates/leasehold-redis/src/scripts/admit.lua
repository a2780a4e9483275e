-- Checks a fence at a gate, and remembers it.
--
-- KEYS: fence, gate. ARGV: fence, 1 to remember it or 0 only to see whether it was ever issued.
-- Answers {'accepted'}, {'stale', highest}, {'never', counter or ''} or {'damaged', key, problem}.

local LAST = 9007199254740991

local function number(key, text)
  if string.find(text, '^[1-9]%d*$') and #text <= 16 and tonumber(text) <= LAST then return tonumber(text) end
end

local counter = redis.pcall('HGET', KEYS[1], 'counter')
if type(counter) == 'table' then return {'damaged', KEYS[1], counter.err} end
local mark = redis.pcall('GET', KEYS[2])
if type(mark) == 'table' then return {'damaged', KEYS[2], mark.err} end
if counter and not number(KEYS[1], counter) then return {'damaged', KEYS[1], 'its counter is no fence'} end
if mark and not number(KEYS[2], mark) then return {'damaged', KEYS[2], 'its mark is no fence'} end

local fence = tonumber(ARGV[1])
if not counter or fence > tonumber(counter) then return {'never', counter or ''} end
if mark and fence < tonumber(mark) then return {'stale', mark} end
if ARGV[2] == '1' and mark ~= ARGV[1] then redis.call('SET', KEYS[2], ARGV[1]) end
return {'accepted'}
