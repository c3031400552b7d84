-- Why: changes get their places in the order in which they were written, at a cost that does not depend on how many wait.
-- Oldest binary: step 2; its changes draw seq too, because that is the default of the column. It gives places by "at", as before.

-- seq is drawn when a change is written, with all rows of its batch held. A batch that saw another one is written after that has
-- committed, so it draws the greater number, whatever the clocks say. Changes from before this step have none and come first.
ALTER TABLE moorage_change ADD COLUMN seq bigint;
CREATE SEQUENCE moorage_change_seq OWNED BY moorage_change.seq;
ALTER TABLE moorage_change ALTER COLUMN seq SET DEFAULT nextval('moorage_change_seq');
