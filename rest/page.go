package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	"moorage"
	"moorage/catalog"
)

// Bounds of pages.
const (
	// pageSizeDefault is for clients that begin to page without saying how. Java clients always
	// do, and follow the tokens.
	pageSizeDefault = 1000
	// pageSizeMax bounds the memory of one answer; a page may be shorter than asked for.
	pageSizeMax = 10_000
)

// tokenVersion is the first byte of a page token's content. The next 8 bytes tell which
// list it belongs to, the rest is the last name of the page before.
const tokenVersion = 1

const tokenBytesHead = 1 + 8

// pager is one client's walk through a list.
type pager struct {
	list [8]byte // which list
	page catalog.Page
}

// pagerOf reads pageToken and pageSize. list names the list that is walked: its operation,
// warehouse and namespace. Without a pageToken everything is answered at once, whatever
// pageSize says; an empty one begins to page.
// Source: REST specification, PageToken.
func pagerOf(q query, list ...string) (pager, error) {
	p := pager{list: listHash(list)}
	size := pageSizeDefault
	if text, given, err := q.text("pageSize"); err != nil {
		return pager{}, err
	} else if given {
		size, err = strconv.Atoi(text)
		if err != nil || size < 1 {
			return pager{}, moorage.Errorf(moorage.KindBadRequest, "Invalid pageSize: %q, want a positive integer", text)
		}
	}
	token, given, err := q.text("pageToken")
	if err != nil || !given {
		return p, err
	}
	p.page.Limit = min(size, pageSizeMax)
	if token != "" {
		p.page.After, err = p.open(token)
	}
	return p, err
}

// listHash tells lists apart; the length before each part keeps "a","bc" from "ab","c".
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

// open returns the name that a page begins after.
func (p pager) open(token string) (string, error) {
	content, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(content) <= tokenBytesHead {
		return "", errPageToken
	}
	after := string(content[tokenBytesHead:])
	// Sealing again finds another version or list, and spellings that decode alike.
	if moorage.ValidateName("name", after) != nil || *p.seal(after) != token {
		return "", errPageToken
	}
	return after, nil
}

var errPageToken = moorage.Errorf(moorage.KindBadRequest, "Invalid pageToken: it was not made for this list")

// seal returns the token of the page after the name next, nil if there is none.
func (p pager) seal(next string) *string {
	if next == "" || p.page.Limit == 0 {
		return nil
	}
	content := make([]byte, 0, tokenBytesHead+len(next))
	content = append(content, tokenVersion)
	content = append(content, p.list[:]...)
	content = append(content, next...)
	token := base64.RawURLEncoding.EncodeToString(content)
	return &token
}
