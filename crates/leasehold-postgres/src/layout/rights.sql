-- Nobody may do anything whom the owner does not let.

REVOKE ALL ON SCHEMA @schema@ FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @schema@ FROM PUBLIC;
