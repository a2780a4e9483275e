//! leasehold-testkit
