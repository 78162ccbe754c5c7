-- What a reader thought of an answer. It stands in the row of its turn, so it is kept and deleted with it.

ALTER TABLE conversations
    ADD COLUMN rating   text CHECK (rating IN ('up', 'down')),
    ADD COLUMN reason   text CHECK (reason IN ('wrong', 'incomplete', 'off_topic', 'unclear', 'outdated', 'other')),
    ADD COLUMN comment  text CHECK (char_length(comment) <= 1000),
    ADD COLUMN rated_at timestamptz;

-- Reports read the turns of the last days, of all sessions.
CREATE INDEX idx_conversations_created ON conversations (created_at DESC);
