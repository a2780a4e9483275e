//! leasehold-sqlite
