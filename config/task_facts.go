package config

import "github.com/geoalign/geoalign/config/section"

// What the losses of tasks are switched by and give.

func (v *VQA) On() bool            { return v.Weight > 0 }
func (p *Captioning) On() bool     { return p.Weight > 0 }
func (p *PairLoss) On() bool       { return p.Weight > 0 }
func (l *ClassLoss) On() bool      { return l.Weight > 0 }
func (e *EntailmentLoss) On() bool { return e.Weight > 0 }
func (n *NLVR) On() bool           { return n.Weight > 0 }
func (a *Assignment) On() bool     { return a.Weight > 0 }

// Gives implements section.Giver.
func (*VQA) Gives() []section.Fact {
	return []section.Fact{section.FusedPairs, section.Soft, section.States}
}

// Gives implements section.Giver.
func (p *Captioning) Gives() []section.Fact {
	list := []section.Fact{section.BatchImages, section.States, section.AllPatches}
	switch {
	case p.byTransformer() > 0:
		list = append(list, section.FusedPairs, section.Soft)
	case p.Dropout > 0:
		list = append(list, section.Beside, section.Dropout)
	default:
		list = append(list, section.Beside)
	}
	return list
}

// Gives implements section.Giver.
func (*PairLoss) Gives() []section.Fact { return []section.Fact{section.Beside} }

// Gives implements section.Giver.
func (*ClassLoss) Gives() []section.Fact { return []section.Fact{section.Beside} }

// Gives implements section.Giver.
func (*EntailmentLoss) Gives() []section.Fact {
	return []section.Fact{section.FusedPairs, section.Soft}
}

// Gives implements section.Giver.
func (*NLVR) Gives() []section.Fact { return []section.Fact{section.FusedPairs, section.Soft} }

// Gives implements section.Giver.
func (*Assignment) Gives() []section.Fact { return []section.Fact{section.FusedPairs} }
