package moorage

// Caller is who asks for something. One without a name is nobody, who is denied
// everything.
type Caller struct {
	Name string
	// Client is what the caller's program calls itself: the User-Agent, at most ClientBytesMax. It
	// decides nothing.
	Client string
}

// ClientBytesMax bounds Caller.Client.
const ClientBytesMax = 200

// Anonymous returns the caller of a request that nobody had to sign.
func Anonymous() Caller { return Caller{Name: "anonymous"} }

// System returns the caller of a job of the server itself, such as "purge".
func System(job string) Caller { return Caller{Name: "system:" + job} }

// IsNobody reports whether c has no name.
func (c Caller) IsNobody() bool { return c.Name == "" }
