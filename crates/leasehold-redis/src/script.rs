//! One constant script, and a call of it.

use redis::{Cmd, ToRedisArgs};
use std::sync::LazyLock;

/// A Lua script whose text never changes: values come in as KEYS and ARGV only.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    sha: LazyLock<String>,
}

/// A script of `scripts/`, by its name there.
macro_rules! script {
    ($name:literal) => {
        $crate::script::Script::new(include_str!(concat!("scripts/", $name, ".lua")), || {
            redis::Script::new(include_str!(concat!("scripts/", $name, ".lua"))).get_hash().to_owned()
        })
    };
}
pub(crate) use script;

impl Script {
    pub(crate) const fn new(text: &'static str, sha: fn() -> String) -> Self {
        Self { text, sha: LazyLock::new(sha) }
    }
}

/// A call of a script, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    script: &'static Script,
    /// `EVALSHA sha numkeys key… arg…`.
    cmd: Cmd,
    /// Whether doing it twice is the same as once.
    repeatable: bool,
}

impl Call {
    /// All keys have the same hash tag; a Cluster routes by the first.
    pub(crate) fn new(script: &'static Script, keys: &[impl ToRedisArgs]) -> Self {
        // Room for what a call of one lease holds.
        let mut cmd = Cmd::with_capacity(12, 512);
        cmd.arg("EVALSHA").arg(&*script.sha).arg(keys.len());
        for key in keys {
            cmd.arg(key);
        }
        Self { script, cmd, repeatable: false }
    }

    #[must_use]
    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.cmd.arg(arg);
        self
    }

    /// Says that doing it twice is the same as once, so that it may be sent again when its fate is unknown.
    #[must_use]
    pub(crate) const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    pub(crate) const fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    /// The key by which a Cluster routes it.
    pub(crate) fn first_key(&self) -> &[u8] {
        match self.cmd.args_iter().nth(3) {
            Some(redis::Arg::Simple(key)) => key,
            _ => &[],
        }
    }

    /// For a server that has the script.
    pub(crate) const fn short(&self) -> &Cmd {
        &self.cmd
    }

    /// For one that has not: the text goes along, so that nothing can come between loading and running it.
    pub(crate) fn full(&self) -> Cmd {
        with_text(self.script.text, &self.cmd)
    }
}

/// An `EVALSHA` as the `EVAL` of a text.
pub(crate) fn with_text(text: &str, short: &Cmd) -> Cmd {
    let mut cmd = redis::cmd("EVAL");
    cmd.arg(text);
    for arg in short.args_iter().skip(2) {
        if let redis::Arg::Simple(bytes) = arg {
            cmd.arg(bytes);
        }
    }
    cmd
}
