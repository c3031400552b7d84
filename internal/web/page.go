package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"

	"moorage"
)

// PageSizes are the default and maximum sizes of a list's pages. A page may be shorter than
// requested.
type PageSizes struct {
	Default int // page size for clients that send a page token but no size
	Max     int // maximum page size, which limits the memory of one answer
	// Always makes the server page a list even if the request has no token. Otherwise a request
	// without a token gets the whole list in one answer.
	Always bool
}

// tokenVersion is the first byte of a page token's content. The next 8 bytes identify the list. The
// rest is the last name of the previous page.
const tokenVersion = 1

const tokenBytesHead = 1 + 8

// Pager is one client's position in a list.
type Pager struct {
	After string // the last name of the previous page; empty means the start
	Limit int    // names on the page; 0 means all

	list [8]byte // identifies the list
}

// PagerOf reads the parameters pageToken and pageSize of r. list names the list: its operation,
// warehouse and namespace, for example. Without a pageToken, one answer has the whole list, unless
// sizes.Always is set. An empty pageToken requests the first page. Source: REST specification,
// PageToken.
func PagerOf(r *http.Request, sizes PageSizes, list ...string) (Pager, error) {
	p := Pager{list: listHash(list)}
	q := QueryOf(r)
	size := sizes.Default
	if text, given, err := q.Text("pageSize"); err != nil {
		return Pager{}, err
	} else if given {
		size, err = strconv.Atoi(text)
		if err != nil || size < 1 {
			return Pager{}, moorage.Errorf(moorage.KindBadRequest,
				"Invalid pageSize: %q, want a positive integer", text)
		}
	}
	token, given, err := q.Text("pageToken")
	if err != nil || !given && !sizes.Always {
		return p, err
	}
	p.Limit = min(size, sizes.Max)
	if token != "" {
		p.After, err = p.open(token)
	}
	return p, err
}

// listHash returns a hash that identifies a list. The length before each part distinguishes
// "a","bc" from "ab","c".
func listHash(list []string) (hash [8]byte) {
	var text []byte
	for _, part := range list {
		text = strconv.AppendInt(text, int64(len(part)), 10)
		text = append(text, ':')
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	copy(hash[:], sum[:])
	return hash
}

// open returns the name in token. The page begins after this name.
func (p Pager) open(token string) (string, error) {
	content, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(content) <= tokenBytesHead {
		return "", errPageToken
	}
	after := string(content[tokenBytesHead:])
	// Sealing the name must give the same token. This finds tokens of another version or list, and
	// other spellings that decode to the same bytes. A position that begins with a zero byte was
	// sealed by the catalog, and is not a name.
	if after[0] != 0 && moorage.ValidateName("name", after) != nil || *p.Seal(after) != token {
		return "", errPageToken
	}
	return after, nil
}

var errPageToken = moorage.Errorf(moorage.KindBadRequest, "Invalid pageToken: it was not made for this list")

// Seal returns the token of the page that begins after the name in next. If next is empty, there is
// no further page, and Seal returns nil.
func (p Pager) Seal(next string) *string {
	if next == "" || p.Limit == 0 {
		return nil
	}
	content := make([]byte, 0, tokenBytesHead+len(next))
	content = append(content, tokenVersion)
	content = append(content, p.list[:]...)
	content = append(content, next...)
	token := base64.RawURLEncoding.EncodeToString(content)
	return &token
}
