-- Renews claims, each for itself: one answer a claim, in their order.
--
-- KEYS: claim and fence, for each. ARGV: the claim as it must be and its new ttl in ms, for each.
-- An answer is 1, or why not: {'gone', holder, its fence, counter}, {'unwitnessed'}, {'damaged', key, problem}.

local function renew(claim, fence, expected, ttl)
  local value = redis.pcall('GET', claim)
  if value == expected then
    redis.call('PEXPIRE', claim, ttl)
    return 1
  end
  if type(value) == 'table' then return {'damaged', claim, value.err} end
  if value and string.sub(value, 1, #expected + 9) == expected .. ' witness=' then
    if redis.call('PUBSUB', 'NUMSUB', string.sub(value, #expected + 10))[2] == 0 then return {'unwitnessed'} end
    redis.call('PEXPIRE', claim, ttl)
    return 1
  end
  local counter = redis.pcall('HGET', fence, 'counter')
  if type(counter) == 'table' then return {'damaged', fence, counter.err} end
  local held, replica = string.match(value or '', '^fence=([1-9]%d*) attempt=%x+ replica=(%S+)')
  if value and not held and not string.find(value, '^heir=%S+$') then
    return {'damaged', claim, 'its value cannot be read'}
  end
  return {'gone', replica or '', held or '', counter or ''}
end

local answers = {}
for i = 1, #KEYS, 2 do
  answers[#answers + 1] = renew(KEYS[i], KEYS[i + 1], ARGV[i], ARGV[i + 1])
end
return answers
