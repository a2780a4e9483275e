//! Scripts that check a fence before they do their work.

use crate::script::with_text;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, ToRedisArgs, Value, aio::ConnectionLike};
use std::sync::LazyLock;

/// Constant text around the user's: the check, and the user's own KEYS and ARGV.
const HEAD: &str = "local function work(KEYS, ARGV)\n";
const TAIL: &str = "
end
local mark = redis.pcall('GET', KEYS[1])
if type(mark) == 'table' then return {'mark', mark.err} end
if mark and not (string.find(mark, '^[1-9]%d*$') and #mark <= 16 and tonumber(mark) <= 9007199254740991) then
  return {'damaged', 'it is no fence'}
end
if mark and tonumber(ARGV[1]) < tonumber(mark) then return {'stale', mark} end
if mark and ARGV[2] ~= '' and tonumber(ARGV[1]) - tonumber(mark) > tonumber(ARGV[2]) then return {'jump', mark} end
if mark ~= ARGV[1] then
  local kept = redis.pcall('SET', KEYS[1], ARGV[1])
  if kept.err then return {'mark', kept.err} end
end
local done, answer = pcall(work, {unpack(KEYS, 2)}, {unpack(ARGV, 3)})
if not done then return {'work', type(answer) == 'table' and answer.err or tostring(answer)} end
if type(answer) == 'table' and answer.err then return {'work', answer.err} end
return {'done', answer}
";

/// A Lua script that runs only under a token that is not stale.
///
/// The text is the body of a function: `KEYS[1]` and `ARGV[1]` are the first ones that are given to
/// [`Fenced::run`](super::Fenced::run), and what it returns is the answer. Values belong there, never into the text.
///
/// ```
/// # use leasehold_redis::FencedScript;
/// let add = FencedScript::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
/// ```
#[derive(Debug, Clone)]
pub struct FencedScript {
    text: String,
    sha: String,
}

impl FencedScript {
    /// A script around the user's text.
    #[must_use]
    pub fn new(body: &str) -> Self {
        let text = format!("{HEAD}{body}{TAIL}");
        let sha = redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha }
    }

    /// The call, as far as its keys.
    pub(super) fn begin(&self, mark: &str, keys: &[impl ToRedisArgs]) -> Cmd {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.sha).arg(1 + keys.len()).arg(mark);
        for key in keys {
            call.arg(key);
        }
        call
    }

    /// Sends a call; with the whole text if the server has lost the script.
    pub(super) async fn send(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        call: Cmd,
    ) -> Result<Value, RedisError> {
        match connection.req_packed_command(&call).await.and_then(Value::extract_error) {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                connection.req_packed_command(&with_text(&self.text, &call)).await?.extract_error()
            }
            answer => answer,
        }
    }
}

/// The script for single commands.
pub(super) fn one_command() -> &'static FencedScript {
    static ONE: LazyLock<FencedScript> =
        LazyLock::new(|| FencedScript::new("return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))"));
    &ONE
}
