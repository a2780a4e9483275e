//! leasehold-core
