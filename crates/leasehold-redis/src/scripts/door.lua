-- Keeps the door of a gate shut for longer, or opens it, if it is ours.
--
-- KEYS: door. ARGV: whose it must be, ms to keep it shut or 0 to open it.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then return redis.call('DEL', KEYS[1]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
