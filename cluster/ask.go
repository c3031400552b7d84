package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"moorage"
)

const (
	// askAllMax is the maximum time that a node waits for the answers of the others.
	askAllMax = 3 * time.Second
	// askedBytesMax is the maximum size of one answer.
	askedBytesMax = 4 << 20
)

// Asked is the answer of another node. Err explains why there is no answer.
type Asked struct {
	Node string // its peer address
	Body []byte
	Err  error
}

// AskAll sends a read-only request without a body to all other members, on behalf of caller. It
// returns an answer for each member, in the order of their addresses, after at most a few seconds.
func (r *Router) AskAll(request *http.Request, caller moorage.Caller) []Asked {
	ctx, cancel := context.WithTimeout(request.Context(), r.askAllMax)
	defer cancel()
	var answers []Asked
	for _, member := range r.config.View().Members {
		if member.Address != r.config.Address {
			answers = append(answers, Asked{Node: member.Address})
			if member.Version != r.config.Version {
				answers[len(answers)-1].Err = fmt.Errorf("it runs version %s, and this node %s", member.Version,
					r.config.Version)
			}
		}
	}
	var asking sync.WaitGroup
	for i := range answers {
		if answer := &answers[i]; answer.Err == nil {
			asking.Go(func() { answer.Body, answer.Err = r.askOne(ctx, request, caller, answer.Node) })
		}
	}
	asking.Wait()
	return answers
}

// askOne returns the body of the answer of the node at address.
func (r *Router) askOne(ctx context.Context, request *http.Request, caller moorage.Caller, address string) (
	[]byte, error) {
	forwarded, err := r.forwardOf(ctx, request, Commit{Caller: caller}, address, "")
	if err != nil {
		return nil, err
	}
	forwarded.Header.Del("Accept-Encoding") // this node reads the answer
	answer, err := r.transport.RoundTrip(forwarded)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer was %s", answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, askedBytesMax+1))
	if err == nil && len(body) > askedBytesMax {
		err = fmt.Errorf("the answer has over %d bytes", askedBytesMax)
	}
	return body, err
}
