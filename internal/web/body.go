package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"moorage"
)

// The memory for a body grows with the bytes that have arrived, whatever length the header
// announces. The memory starts at bodyBytesFirst and doubles.
const (
	// bodyBytesFirst is enough for a typical commit. It is also small enough to spend on a client
	// that sends only a header.
	bodyBytesFirst = 4 << 10
	// bodyBytesFree is the length up to which a body needs no room; see type room. Nearly all
	// bodies are shorter.
	bodyBytesFree = 64 << 10
)

// These limits leave an honest client enough time to send its body. A body that stops or trickles
// would only occupy a connection.
const (
	// bodyPatience is how long a body may make no progress before bodyRateLeast applies. A client
	// may have to wait for its own disk or network.
	bodyPatience = 20 * time.Second
	// bodyRateLeast is the minimum average rate of a body after bodyPatience, in bytes a second. A
	// network of 128 kbit/s reaches it.
	bodyRateLeast = 16 << 10
	// bodyTimeMax is the maximum time for the whole body. Each part of a long body must arrive
	// within its share of this time. For a body of BodyBytesMaxDefault, that means 220 KiB a
	// second.
	bodyTimeMax = 5 * time.Minute
)

// roomWait is the maximum total time for which a large body waits for room that others occupy. It
// is shorter than the time that clients wait for an answer.
const roomWait = 5 * time.Second

// incoming is the body of a request while it arrives.
type incoming struct {
	exchange *exchange
	request  *http.Request
	wants    int64     // length of the body; if unknown, one more than the maximum
	began    time.Time // moved later by the time spent waiting for room
	waited   time.Duration
	text     []byte
}

// HasLargeBody reports whether the body of r may be large enough to need room.
func HasLargeBody(r *http.Request) bool {
	return r.ContentLength < 0 || r.ContentLength > bodyBytesFree
}

// strangers is the owner of the room for all requests that MarkStranger has marked. No caller has
// this name.
const strangers = " strangers"

// MarkStranger marks a request. All marked requests together get as much room for their bodies as
// one caller.
func MarkStranger(w http.ResponseWriter) {
	if x, ok := w.(*exchange); ok {
		x.isStranger = true
	}
}

// HangUp makes the server send the answer before the whole body has arrived, and then close the
// connection.
func (s *Server) HangUp(w http.ResponseWriter) { s.hangUp(w) }

// ReadBody returns the whole body of r. If the body is too long, the error is KindTooLarge. If a
// large body gets no room, the error is KindTooManyRequests.
func (s *Server) ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, moorage.Errorf(moorage.KindBadRequest,
			"Content-Encoding %q is not supported for requests", encoding)
	}
	if r.ContentLength > s.config.BodyBytesMax {
		return nil, s.tooLarge(w)
	}
	in := incoming{exchange: w.(*exchange), request: r, wants: r.ContentLength, began: s.config.Now()}
	if in.wants < 0 {
		in.wants = s.config.BodyBytesMax + 1
	}
	for {
		if err := s.grow(&in); err != nil {
			return nil, err
		}
		s.setReadDeadline(in.exchange, in.deadline())
		n, err := r.Body.Read(in.text[len(in.text):cap(in.text)])
		in.text = in.text[:len(in.text)+n]
		switch {
		case int64(len(in.text)) > s.config.BodyBytesMax:
			return nil, s.tooLarge(w)
		case errors.Is(err, io.EOF):
			s.setReadDeadline(in.exchange, time.Time{})
			return in.text, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.hangUp(w)
			return nil, moorage.Errorf(moorage.KindBadRequest,
				"The request body came too slowly: %d bytes in %s; nothing was changed", len(in.text),
				s.config.Now().Sub(in.began).Round(time.Second))
		case err != nil:
			return nil, moorage.Errorf(moorage.KindBadRequest, "The request body ended early")
		}
	}
}

// grow enlarges the memory for the body in if it is full.
func (s *Server) grow(in *incoming) error {
	was := int64(cap(in.text))
	if int64(len(in.text)) < was {
		return nil
	}
	// Leave room for one byte more than wanted, so that a last read can find the end of the body.
	grown := max(min(max(2*was, bodyBytesFirst), in.wants+1), was+1)
	if grown > bodyBytesFree {
		if err := s.takeRoom(in, min(grown, in.wants, s.config.BodyBytesMax)-in.exchange.room.held); err != nil {
			return err
		}
	}
	text := make([]byte, len(in.text), grown)
	copy(text, in.text)
	in.text = text
	return nil
}

// takeRoom waits for room for the given number of further bytes of a body. The request holds the
// room until it is answered.
func (s *Server) takeRoom(in *incoming, bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(in.request.Context(), roomWait-in.waited)
	defer cancel()
	if in.exchange.room.number == 0 && s.config.Authenticate != nil {
		in.exchange.room.owner = CallerOf(in.request).Name
		if in.exchange.isStranger {
			in.exchange.room.owner = strangers
		}
	}
	before := s.config.Now()
	taken := s.bodies.take(ctx, &in.exchange.room, bytes)
	waited := s.config.Now().Sub(before)
	in.waited += waited
	in.began = in.began.Add(waited)
	if taken {
		return nil
	}
	if err := in.request.Context().Err(); err != nil {
		return err
	}
	s.hangUp(in.exchange)
	return moorage.Errorf(moorage.KindTooManyRequests,
		"Too many large requests are being answered; nothing was changed")
}

// deadline returns the time by which more of the body must have arrived.
func (in *incoming) deadline() time.Time {
	earned := time.Duration(len(in.text)) * time.Second / bodyRateLeast
	if whole := in.request.ContentLength; whole > bodyBytesFree { // the body holds room
		earned = min(earned, time.Duration(float64(bodyTimeMax)*float64(len(in.text))/float64(whole)))
	}
	return in.began.Add(min(bodyPatience+earned, bodyTimeMax))
}

// expectBody limits the time until the body of r begins. The limit also applies to a body that no
// handler reads, because net/http reads such a body after the answer.
func (s *Server) expectBody(x *exchange, r *http.Request) {
	if r.ContentLength != 0 {
		s.setReadDeadline(x, s.config.Now().Add(bodyPatience))
	}
}

// setReadDeadline sets the deadline for reads from the connection. The zero time means no deadline.
func (s *Server) setReadDeadline(x *exchange, deadline time.Time) {
	// An error is ignored: a ResponseWriter that is not a connection, as in tests, has no deadline.
	_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(deadline)
}

// hangUp makes the server send the answer before the rest of the body has arrived, and then close
// the connection. Otherwise net/http would first wait for a part of the rest.
func (s *Server) hangUp(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	// If this fails, the client only waits longer.
	_ = http.NewResponseController(w).EnableFullDuplex()
}

func (s *Server) tooLarge(w http.ResponseWriter) error {
	s.hangUp(w)
	return moorage.Errorf(moorage.KindTooLarge, "The request body is longer than %d bytes", s.config.BodyBytesMax)
}
