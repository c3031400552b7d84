package client

// Cluster has the states of nodes.
type Cluster struct {
	Nodes []NodeState `json:"nodes"` // the answering node first
}

// NodeState is the state of one node, as the node itself answers it.
type NodeState struct {
	NodeAsked
	// The other fields are zero if the node did not answer.
	Version string `json:"version,omitempty"`
	// Members is how many nodes the node knows, with itself.
	Members int `json:"members,omitempty"`
	// Store has the calls to the store since the node started, the most frequent first.
	Store []CallTimes `json:"store,omitempty"`
	// Connections are those of the node to its database; nil if the store is no database.
	Connections *Connections `json:"connections,omitempty"`
	// Cached is the cache of metadata documents.
	Cached *CacheUse `json:"cached,omitempty"`
	// HeapBytes is the memory of live and dead Go objects.
	HeapBytes int64 `json:"heap-bytes,omitempty"`
}

// CallTimes are the durations of the successful calls of one kind, in milliseconds. Quantiles are
// estimates from a histogram.
type CallTimes struct {
	Call   string  `json:"call"`
	Count  int64   `json:"count"`
	Failed int64   `json:"failed"` // calls with another outcome, also conflicts; not in Count
	P50    float64 `json:"p50-ms"`
	P99    float64 `json:"p99-ms"`
}

// Connections are the connections of a pool.
type Connections struct {
	Used int `json:"used"`
	Idle int `json:"idle"`
	Max  int `json:"max"`
}

// CacheUse is how full a cache is.
type CacheUse struct {
	Bytes    int64 `json:"bytes"`
	BytesMax int64 `json:"bytes-max"`
}
