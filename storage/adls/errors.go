package adls

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"moorage/storage"
)

// Azure's error codes that this package treats specially.
const (
	codeContainerNotFound   = "ContainerNotFound"
	codeDirectoryIsNotEmpty = "DirectoryIsNotEmpty"
	codeNoAuthentication    = "NoAuthenticationInformation"
	codeOperationTimedOut   = "OperationTimedOut"
)

// impossibleNames are the codes for a name that no blob can have.
var impossibleNames = []string{"InvalidUri", "InvalidResourceName", "OutOfRangeInput"}

// reply is an error answer of Azure. The SDK's own error contains the whole answer in its text.
type reply struct {
	status int
	code   string // may be empty
}

// Error returns Azure's status and message.
func (r *reply) Error() string {
	if r.code == "" {
		return fmt.Sprintf("Azure answered %d %s", r.status, http.StatusText(r.status))
	}
	return fmt.Sprintf("Azure answered %d %s", r.status, r.code)
}

// Is reports whether Azure demands fewer requests, if target is storage.ErrSlowDown. A timeout can
// be throttling too. Source: "Performance and scalability checklist for Blob storage", throttling.
func (r *reply) Is(target error) bool {
	return target == storage.ErrSlowDown && (r.status == http.StatusTooManyRequests ||
		r.status == http.StatusServiceUnavailable || r.code == codeOperationTimedOut)
}

// textBytesMax is the maximum length of an SDK error's text.
const textBytesMax = 600

// errNoToken means that there is no identity, or that Microsoft Entra refused the identity.
var errNoToken = errors.New("no token of Microsoft Entra")

// shorten returns an error of the SDK in one line, without Azure's answer and headers.
func shorten(err error) error {
	var response *azcore.ResponseError
	var refused *azidentity.AuthenticationFailedError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %w", errNoToken, oneLine{refused})
	case errors.As(err, &response):
		return &reply{response.StatusCode, response.ErrorCode}
	}
	return oneLine{err}
}

// oneLine wraps an error whose text may have several lines, and shows the text in one line.
type oneLine struct{ error }

// Error returns the text of the error in one line.
func (o oneLine) Error() string {
	text := strings.Join(strings.Fields(o.error.Error()), " ")
	return text[:min(len(text), textBytesMax)]
}

// Unwrap returns the wrapped error.
func (o oneLine) Unwrap() error { return o.error }

// statusOf returns the status of Azure's answer, or 0 if there was no answer.
func statusOf(err error) int {
	var answered *reply
	if errors.As(err, &answered) {
		return answered.status
	}
	return 0
}

// codeOf returns Azure's error code, or "" if there is none.
func codeOf(err error) string {
	var answered *reply
	if errors.As(err, &answered) {
		return answered.code
	}
	return ""
}

// translate converts an error from reading a blob to an error of package storage. A missing
// container is not ErrNotFound, because callers must not conclude that a file is gone for good.
func translate(b blobName, err error) error {
	status, code := statusOf(err), codeOf(err)
	if status == http.StatusNotFound && code != codeContainerNotFound ||
		status == http.StatusBadRequest && slices.Contains(impossibleNames, code) {
		return fmt.Errorf("%w: %s: %w", storage.ErrNotFound, b.location, err)
	}
	return fmt.Errorf("%s: %w", b.location, err)
}
