//! What rows are told apart by.

use tokio_postgres::types::{FromSqlOwned, ToSql, Type};

/// A type of keys. Implement it for others that the driver knows, such as a UUID.
pub trait RowKey: ToSql + FromSqlOwned + Clone + Send + Sync {
    /// Its type on the server.
    const TYPE: Type;
    /// The type of its arrays there.
    const ARRAY: Type;
}

macro_rules! keys {
    ($($key:ty: $one:ident, $many:ident;)*) => {$(
        impl RowKey for $key {
            const TYPE: Type = Type::$one;
            const ARRAY: Type = Type::$many;
        }
    )*};
}
keys! {
    i32: INT4, INT4_ARRAY;
    i64: INT8, INT8_ARRAY;
    String: TEXT, TEXT_ARRAY;
}
