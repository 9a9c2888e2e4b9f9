package train

import (
	"fmt"

	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/train/schedule"
)

// agreeing is a system that says how alike the text features of an update's batch are to those of its teacher.
type agreeing interface{ TextAgreement() float64 }

// momentum returns m of theta_m = m*theta_m + (1-m)*theta for the update after a step. With a dynamic momentum.rule it
// adds 1-m to the numbers of the step, as online_weight; features that are not finite are a *NonFiniteError, as a loss
// that is not. All processes get the same.
func (s *Session) momentum(step int, out *StepResult) (float64, error) {
	c := s.cfg.Momentum
	if !c.Dynamic() {
		return schedule.Momentum(step+1, c.M, c.RampSteps), nil
	}
	model, ok := s.model.(agreeing)
	if !ok {
		return 0, fmt.Errorf("train: momentum.rule: the system %T does not compare its texts with a teacher's: set it to %q", s.model, objectives.MomentumStatic)
	}
	cosine := model.TextAgreement()
	if !finite(cosine) {
		return 0, &NonFiniteError{Step: step,
			What: fmt.Sprintf("the mean cosine of text features with the teacher's, which momentum.rule reads, is %v (loss %v)", cosine, out.Loss)}
	}
	m := schedule.DynamicMomentum(cosine, c.Rule == objectives.MomentumDynamicTeacher)
	out.Parts = append(out.Parts, Value{Name: "online_weight", Value: 1 - m, Measure: true})
	return m, nil
}
