//! The statements of a store, with the name of its schema. Each is one call of a function of the layout.

use crate::config::Schema;

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        #[derive(Debug, Clone)]
        pub(crate) struct Texts {
            /// The channel on which all news about leases are told.
            pub(crate) all: String,
            schema: Schema,
            $($(#[$doc])* pub(crate) $name: String,)*
        }

        impl Texts {
            pub(crate) fn new(schema: &Schema) -> Self {
                let quoted = schema.quoted();
                Self {
                    all: channel(schema, "all", ""),
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

    pub(crate) const fn schema(&self) -> &Schema {
        &self.schema
    }
}

/// The same as the function `channel` of the layout. A schema and a kind have no colon, so that no two names meet.
pub(crate) fn channel(schema: &Schema, kind: &str, name: &str) -> String {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(format!("{schema}:{kind}:{name}"));
    let hex = hash.iter().take(20).map(|byte| format!("{byte:02x}"));
    hex.fold("lh_".to_owned(), |channel, byte| channel + &byte)
}
