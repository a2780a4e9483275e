//! Leases of leasehold in PostgreSQL, and locks in the user's own database.
