package client

// Cluster lists the states of nodes.
type Cluster struct {
	Nodes []NodeState `json:"nodes"` // the answering node first
}

// NodeState is the state of one node, as reported by the node itself.
type NodeState struct {
	NodeAsked
	// The other fields are zero if the node did not answer.
	Version string `json:"version,omitempty"`
	// Members is the number of nodes that the node knows, including itself.
	Members int `json:"members,omitempty"`
	// Store summarizes the calls to the store since the node started, the most frequent first.
	Store []CallTimes `json:"store,omitempty"`
	// Connections describes the node's connections to its database. It is nil if the store is not a
	// database.
	Connections *Connections `json:"connections,omitempty"`
	// Cached describes the cache of metadata documents.
	Cached *CacheUse `json:"cached,omitempty"`
	// HeapBytes is the memory of Go objects, both reachable ones and garbage.
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

// Connections describes a pool of connections.
type Connections struct {
	Used int `json:"used"`
	Idle int `json:"idle"`
	Max  int `json:"max"`
}

// CacheUse describes how full a cache is.
type CacheUse struct {
	Bytes    int64 `json:"bytes"`
	BytesMax int64 `json:"bytes-max"`
}
