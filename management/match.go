package management

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
)

// tagOfValue returns the ETag of an answer that has no version of its own: two equal answers have
// the same one.
func tagOfValue(answer any) string {
	text, _ := json.Marshal(answer) // the types of the API can always be encoded
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// matches reports whether the object that r changes is as r requires. tag is its present ETag.
// exists is false for an object that is not there, which * does not match. Of If-None-Match it
// knows only *. Source: RFC 9110, 13.1.1 and 13.1.2.
func matches(r *http.Request, tag string, exists bool) bool {
	if exists && r.Header.Get("If-None-Match") == "*" {
		return false
	}
	lines := r.Header.Values("If-Match")
	for _, line := range lines {
		for named := range strings.SplitSeq(line, ",") {
			named = strings.TrimSpace(named)
			if named != "" && named == tag || named == "*" && exists {
				return true
			}
		}
	}
	return len(lines) == 0
}
