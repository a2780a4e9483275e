-- Renews claims, each for itself: one answer a claim, in their order.
--
-- KEYS: claim and fence, for each. ARGV: the claim as it must be and its new ttl in ms, for each.
-- An answer is 1, or why not: {'gone', holder, its fence, counter, last term's fence}, {'unwitnessed'}, {'damaged', key, problem}.
--
-- Only the first write may end the script by an error: for another one the claims before it would be told as refused.

local call, match = redis.pcall, string.match

-- The claim remembers its fence. If the counter was set back or lost beside it, it would be issued once more when the
-- claim has ended.
local function repair(key, claim)
  local counter = call('HGET', key, 'counter')
  if type(counter) == 'table' then return end
  local fence = match(claim, '^fence=(%d+)')
  -- Of the same length mostly, and then compared as text; a counter that cannot be read is not ours to mend.
  if counter == fence or counter and (not match(counter, '^%d+$') or #counter > #fence) then return end
  if not counter or #counter < #fence or counter < fence then call('HSET', key, 'counter', fence) end
end

local function renewed(claim, fence, expected, ttl)
  redis.call('PEXPIRE', claim, ttl)
  repair(fence, expected)
  return 1
end

local function renew(claim, fence, expected, ttl)
  local value = call('GET', claim)
  if value == expected then return renewed(claim, fence, expected, ttl) end
  if type(value) == 'table' then return {'damaged', claim, value.err} end
  if value and string.sub(value, 1, #expected + 9) == expected .. ' witness=' then
    local heard = call('PUBSUB', 'NUMSUB', string.sub(value, #expected + 10))
    if heard.err then return {'damaged', claim, heard.err} end
    if heard[2] == 0 then return {'unwitnessed'} end
    return renewed(claim, fence, expected, ttl)
  end
  local counter = call('HGET', fence, 'counter')
  if type(counter) == 'table' then return {'damaged', fence, counter.err} end
  local held, replica = match(value or '', '^fence=([1-9]%d*) attempt=%x+ replica=(%S+)')
  if value and not held and not string.find(value, '^heir=%S+ fence=%d+$') then
    return {'damaged', claim, 'its value cannot be read'}
  end
  local last = match(call('HGET', fence, 'term') or '', '^fence=(%d+) ') or match(value or '', '^heir=%S+ fence=(%d+)$')
  return {'gone', replica or '', held or '', counter or '', last or ''}
end

local answers = {}
for i = 1, #KEYS, 2 do
  answers[#answers + 1] = renew(KEYS[i], KEYS[i + 1], ARGV[i], ARGV[i + 1])
end
return answers
