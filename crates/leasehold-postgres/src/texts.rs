//! The statements of a store, with the name of its schema. Each is one call of a function of the layout.

use crate::config::Schema;
use sha2::{Digest, Sha256};

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        #[derive(Debug, Clone)]
        pub(crate) struct Texts {
            /// The channel on which all news about leases are told.
            pub(crate) all: String,
            /// The first lock of those who listen.
            ears: i64,
            schema: Schema,
            $($(#[$doc])* pub(crate) $name: String,)*
        }

        impl Texts {
            pub(crate) fn new(schema: &Schema) -> Self {
                let quoted = schema.quoted();
                Self {
                    all: channel(schema, "all", ""),
                    ears: ears(schema),
                    schema: schema.clone(),
                    $($name: $text.replace("@schema@", &quoted),)*
                }
            }
        }
    };
}

texts! {
    version: "SELECT @schema@.version()",
    acquire: "SELECT * FROM @schema@.acquire($1, $2, $3, $4, $5, $6, $7)",
    renew: "SELECT * FROM @schema@.renew($1, $2, $3, $4, $5)",
    release: "SELECT * FROM @schema@.release($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    force: "SELECT * FROM @schema@.force($1, $2, $3)",
    look: "SELECT * FROM @schema@.look($1, $2)",
    silent: "SELECT * FROM @schema@.silent_of($1)",
    announce: "SELECT @schema@.announce($1, $2, $3, $4, $5)",
    withdraw: "SELECT @schema@.withdraw($1, $2)",
    candidates: "SELECT * FROM @schema@.candidates($1)",
    post: "SELECT @schema@.post($1, $2, $3, $4, $5, $6, $7, $8)",
    drain: "SELECT * FROM @schema@.drain($1, $2, $3)",
    admit: "SELECT * FROM @schema@.admit($1, $2, $3, $4)",
}

impl Texts {
    /// The channel on which news of a kind about a name is told.
    pub(crate) fn channel(&self, kind: &str, name: &str) -> String {
        channel(&self.schema, kind, name)
    }

    /// The locks that whoever listens to a channel holds shared, so that what is told there is not left untold.
    pub(crate) fn ears_of(&self, channel: &str) -> Vec<i64> {
        if channel == self.all {
            return (0..EARS).map(|place| self.ears + place).collect();
        }
        let place = channel.get(3..5).and_then(|byte| i64::from_str_radix(byte, 16).ok()).unwrap_or(0) % EARS;
        vec![self.ears + place]
    }

    pub(crate) const fn schema(&self) -> &Schema {
        &self.schema
    }
}

/// How many locks of those who listen there are, over which the leases of a schema are spread: few, for the server's table of
/// locks has room for some thousands only, and a process that listens to everything holds them all.
pub(crate) const EARS: i64 = 32;

/// The first lock of those who listen to a schema's leases.
pub(crate) fn ears(schema: &Schema) -> i64 {
    let hash = Sha256::digest(format!("{schema}:ears:"));
    let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // The others follow it.
    number.cast_signed() & !(EARS - 1)
}

/// The same as the function `channel` of the layout. A schema and a kind have no colon, so that no two names meet.
pub(crate) fn channel(schema: &Schema, kind: &str, name: &str) -> String {
    let hash = Sha256::digest(format!("{schema}:{kind}:{name}"));
    let hex = hash.iter().take(20).map(|byte| format!("{byte:02x}"));
    hex.fold("lh_".to_owned(), |channel, byte| channel + &byte)
}
