-- Checks a fence at a gate, and remembers it.
--
-- KEYS: claim, fence, gate. ARGV: fence, 1 to remember it or 0 only to look.
-- Answers {'accepted'}, {'stale', highest}, {'never', highest known or ''} or {'damaged', key, problem}.

local LAST = 9007199254740991 -- 2^53 - 1: up to here a Lua number is exact

local function number(text)
  local value = text and #text <= 16 and string.match(text, '^[1-9]%d*$') and tonumber(text)
  return value and value <= LAST and value
end

local counter = redis.pcall('HGET', KEYS[2], 'counter')
if type(counter) == 'table' then return {'damaged', KEYS[2], counter.err} end
local mark = redis.pcall('GET', KEYS[3])
if type(mark) == 'table' then return {'damaged', KEYS[3], mark.err} end
if counter and not number(counter) then return {'damaged', KEYS[2], 'its counter is no fence'} end
if mark and not number(mark) then return {'damaged', KEYS[3], 'its mark is no fence'} end

local fence = tonumber(ARGV[1])
-- The mark first: what it has passed stays refused, whatever became of the counter.
if mark and fence < tonumber(mark) then return {'stale', mark} end
if mark ~= ARGV[1] then
  -- A counter may have been lost or set back. Whatever else holds a fence proves that it was issued.
  local highest = counter and tonumber(counter) or 0
  if mark and tonumber(mark) > highest then highest = tonumber(mark) end
  if fence > highest then
    local claim = redis.pcall('GET', KEYS[1])
    if type(claim) == 'table' then return {'damaged', KEYS[1], claim.err} end
    for _, text in ipairs({claim or '', redis.call('HGET', KEYS[2], 'term') or ''}) do
      local issued = number(string.match(text, '^fence=(%d+) ') or string.match(text, '^heir=%S+ fence=(%d+)$'))
      if issued and issued > highest then highest = issued end
    end
  end
  if fence > highest then return {'never', highest > 0 and string.format('%.0f', highest) or ''} end
  if ARGV[2] == '1' then redis.call('SET', KEYS[3], ARGV[1]) end
end
return {'accepted'}
