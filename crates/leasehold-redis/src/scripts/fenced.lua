-- One command behind a fence.
--
-- KEYS: mark, data. ARGV: fence, how far it may jump or '', command, its words behind the key.
-- Answers {'done', the command's answer}, {'stale', highest}, {'jump', highest} or {'damaged', problem}.

local mark = redis.pcall('GET', KEYS[1])
if type(mark) == 'table' then return {'damaged', mark.err} end
if mark and not (string.find(mark, '^[1-9]%d*$') and #mark <= 16 and tonumber(mark) <= 9007199254740991) then
  return {'damaged', 'it is no fence'}
end
if mark and tonumber(ARGV[1]) < tonumber(mark) then return {'stale', mark} end
if mark and ARGV[2] ~= '' and tonumber(ARGV[1]) - tonumber(mark) > tonumber(ARGV[2]) then return {'jump', mark} end
-- Before the write: one that fails half-way must not be followed by an older one.
if mark ~= ARGV[1] then redis.call('SET', KEYS[1], ARGV[1]) end
return {'done', redis.call(ARGV[3], KEYS[2], unpack(ARGV, 4))}
