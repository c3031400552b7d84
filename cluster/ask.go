package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"moorage"
)

// askedBytesMax is the maximum size of one answer.
const askedBytesMax = 4 << 20

// Asked is the answer of another node. Err explains why there is no answer.
type Asked struct {
	Node string // its peer address
	Body []byte
	Err  error
}

// AskAll sends a read-only request without a body to all other members, on behalf of caller. It
// returns an answer for each member, in the order of their addresses. The context of the request
// should have a deadline: it is the only bound of the wait for a member that hangs.
func (r *Router) AskAll(request *http.Request, caller moorage.Caller) []Asked {
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
			asking.Go(func() { answer.Body, answer.Err = r.askOne(request.Context(), request, caller, answer.Node) })
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
