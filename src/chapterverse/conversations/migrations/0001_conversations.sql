-- Threads and their turns. Messages are read from the turns; nothing is stored twice.
-- Only what Postgres 15 to 18 share, and no extension.

CREATE TABLE conversation_threads (
    thread_id     uuid PRIMARY KEY,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    topic_summary text CHECK (char_length(topic_summary) <= 200),
    metadata      jsonb NOT NULL DEFAULT '{}'::jsonb,
    archived_at   timestamptz
);

CREATE INDEX idx_threads_updated ON conversation_threads (updated_at DESC);
CREATE INDEX idx_threads_created ON conversation_threads (created_at DESC);

CREATE TABLE conversations (
    id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    session_id       uuid NOT NULL REFERENCES conversation_threads (thread_id) ON DELETE CASCADE,
    query            text NOT NULL,
    response         text NOT NULL,
    sources          jsonb NOT NULL DEFAULT '[]'::jsonb,
    mode             text NOT NULL DEFAULT 'general' CHECK (mode IN ('general', 'selected_text')),
    selected_text    text,
    chunks_retrieved integer NOT NULL DEFAULT 0,
    latency_ms       double precision NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    confidence       double precision,
    status           text NOT NULL DEFAULT 'answered' CHECK (status IN ('answered', 'refused', 'truncated')),
    standalone_query text,                                 -- the follow-up as it was searched for
    searches         jsonb NOT NULL DEFAULT '[]'::jsonb,   -- query, count, mean similarity, time of each
    evidence         text[] NOT NULL DEFAULT '{}',         -- ids of the chunks that the answer cites
    position         bigint GENERATED ALWAYS AS IDENTITY   -- decides between turns of one instant
);

CREATE INDEX idx_conversations_session_id ON conversations (session_id);
CREATE INDEX idx_conversations_session_created ON conversations (session_id, created_at DESC);
