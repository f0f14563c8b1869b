"""The claims of the paper about its experiments, as measurable statements."""

from __future__ import annotations

from ocdl.reproduce import cases
from ocdl.reproduce.results import Results
from ocdl.reproduce.verdict import Claim, Verdict


def evaluate_claims(results: Results, is_evaluated: bool = True) -> list[Verdict]:
    """Return the verdict on every claim from the available runs; `is_evaluated` is False if they are too short."""
    return [Verdict(claim, list(claim.cases(results)), is_evaluated) for claim in CLAIMS]


CLAIMS = (
    Claim(
        1,
        "Net is worse than the other three networks on every data set.",
        "At the end, Net has a larger loss and a lower test accuracy than each of the others.",
        cases.final_rankings,
        holds="From nearly every start Net ends behind all the others, in loss and in accuracy.",
        mixed="From some starts Net keeps up with one of the others, in loss or in accuracy.",
        fails="From nearly every start Net keeps up with one of the others, in loss or in accuracy.",
    ),
    Claim(
        2,
        "ODENet descends fastest at first; ResNet overtakes it later.",
        "After 1 % of the iterations ODENet has the lowest loss of all; at the end the loss of ResNet is lower.",
        cases.early_and_final_losses,
        holds="ODENet is first in nearly all cases, and overtaken in nearly all.",
        mixed="In the other cases another network is as fast at first, or ODENet is still ahead of ResNet at the end; "
        "where losses fall by orders of magnitude, either may be ahead when the iterations end.",
        fails="In nearly all cases another network is as fast at first, or ODENet is still ahead of ResNet at the end.",
    ),
    Claim(
        3,
        "ResNet, ODENet and ODENet+Simplex reach similar values.",
        "The largest of the three final losses is at most twice the smallest.",
        cases.final_loss_ratios,
        holds="The three losses are nearly everywhere within a factor of two.",
        mixed="Classes that can be separated let the losses go to zero, each at its own pace, so that their ratio says "
        "little there; where classes overlap it counts.",
        fails="Nearly everywhere one of the three is left behind by more than a factor of two; that says little only "
        "where the losses go to zero.",
    ),
    Claim(
        4,
        "There is little overfitting.",
        "At the end, the test accuracy is at most 0.02 below the training accuracy, and the test loss at most twice "
        "the training loss.",
        cases.generalisation_gaps,
        holds="Nearly everywhere the test data follow the training data, in accuracy and in loss.",
        mixed="In the other cases the accuracy is lower on the test data, or the ratio of the losses is large. The "
        "ratio alone says little where the training loss goes to zero and that of a few test samples does not.",
        fails="Nearly everywhere the networks are worse on the test data, in accuracy or in loss.",
    ),
    Claim(
        5,
        "ODENet uses positive and negative steps of larger size, and none is zero.",
        "There are steps of both signs, none equal to 0, and their mean size exceeds T/N.",
        cases.step_signs,
        holds="From nearly every start the steps are of both signs and large, and none vanishes.",
        mixed="In the other cases all steps have one sign, a step is zero, or they are not larger than T/N.",
        fails="In nearly all cases all steps have one sign, a step is zero, or they are not larger than T/N.",
    ),
    Claim(
        6,
        "ODENet+Simplex keeps two or three steps of twenty.",
        "Two or three steps differ from 0.",
        cases.step_counts,
        holds="From nearly every start two or three steps remain, and the others are exactly 0.",
        mixed="In the other cases fewer or more steps remain; the median says how many are usual.",
        fails="From nearly every start fewer or more steps remain; the median says how many.",
    ),
    Claim(
        7,
        "ODENet moves the points out of view and has a wide decision band when the classifier is trained, and not "
        "when it is fixed.",
        "Trained: ODENet has the largest spread (95th percentile of |y(T)| over that of |x|) and the widest band "
        "(where the probability is between 0.1 and 0.9) of the three ODE networks. Fixed: its spread is at most 1.5 "
        "times that of the wider of the other two.",
        cases.point_spreads,
        holds="With a trained classifier ODENet spreads the points most, over the widest band; with a fixed one it "
        "stays with the others.",
        mixed="In the other cases ODENet has not the largest spread and the widest band with a trained classifier, or "
        "it leaves the view with a fixed one, too.",
        fails="In nearly all cases ODENet has not the largest spread and the widest band with a trained classifier, or "
        "it leaves the view with a fixed one, too.",
    ),
    Claim(
        8,
        "Net and ODENet squeeze the cloud to a string; ResNet and ODENet+Simplex keep it two-dimensional.",
        "The thickness (median ratio of the principal axes of 30 neighbours at time T) of Net and ODENet is below "
        "0.25, that of ResNet and ODENet+Simplex is not.",
        cases.cloud_thicknesses,
        holds="Nearly everywhere the first two make a string, and the other two do not.",
        mixed="In the other cases one of the first two keeps the cloud two-dimensional, or one of the other two "
        "squeezes it; the thicknesses show which.",
        fails="Nearly everywhere one of the first two keeps the cloud two-dimensional, or one of the other two "
        "squeezes it; the thicknesses show which.",
    ),
    Claim(
        9,
        "Two random starts give similar topology.",
        "From two starts, the classifier divides the surroundings of the data into the same numbers of connected "
        "regions of both classes.",
        cases.region_counts,
        holds="Nearly all pairs of starts divide the surroundings of the data alike.",
        mixed="In the other cases the numbers of regions differ. The count also sees the corners of the window, which "
        "no sample constrains.",
        fails="From nearly every pair of starts the numbers of regions differ. The count also sees the corners of the "
        "window, which no sample constrains.",
    ),
    Claim(
        10,
        "The four Runge-Kutta methods learn similar transformations.",
        "From the same start, the images of the points under two methods are at most half as far apart as the points "
        "have been moved (root mean squares).",
        cases.transformation_distances,
        holds="Nearly all pairs of methods move the points to similar places.",
        mixed="The other pairs learn different transformations; the fraction of equal predictions shows whether they "
        "classify alike nevertheless.",
        fails="Nearly all pairs learn different transformations; the fraction of equal predictions shows whether they "
        "classify alike nevertheless.",
    ),
    Claim(
        11,
        "On zeros and eights the three ODE networks do very well, on training and on test data.",
        "Training accuracy at least 0.99, test accuracy at least 0.95.",
        cases.digit_accuracies,
        holds="Nearly always they reach both accuracies.",
        mixed="In the other cases a network misses the accuracy on the training or on the test images.",
        fails="Nearly always a network misses the accuracy on the training or on the test images.",
    ),
)
