"""The closed lists of English that the check of a sentence rests on.

Owns which words carry no claim, which must never be lost, which mean the same, and which are verbs. Never looks at a
text. A word in no list is a content word: it has to be in the evidence as it is, so a list that lacks a word makes the
check stricter, never looser. Words of other languages are therefore held to the letter.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# May be added or lost without changing what is claimed.
FREE = _words(
    "a an the this that these those it its they them their theirs he she his her hers him you your yours we our ours "
    "us i me my itself themselves is are was were be been being am 's 're 've do does did have has had having will "
    "'ll and but also however moreover furthermore additionally there here of in on at for with as to who which whom "
    "whose what how own such etc indeed namely specifically overall finally simply basically essentially actually i.e "
    "while whereas now"
)

# Must be in the evidence when the claim has them; the evidence may have more of them.
LINKS = _words("because so therefore although per like")

# Decide whether a statement is true. A claim may neither add nor lose one.
GUARDS = _words(
    "not never without none nothing nobody nowhere neither nor hardly barely rarely seldom scarcely unable fail lack "
    "avoid prevent refuse reject forbid deny unlike instead except unless if when whenever where until only merely "
    "just otherwise all any some most many few much little more less fewer least both either always usually often "
    "sometimes occasionally typically generally mostly mainly largely partly normally commonly frequently can may "
    "must should would shall about nearly almost exactly or before after than too enough possible impossible perhaps "
    "maybe probably likely unlikely once supposed wrong false myth deprecated then from into onto between within "
    "during via over under above below inside outside against across behind by toward"
)
GUARD_VERBS = _words("fail lack avoid prevent refuse reject forbid deny")  # guards in every inflection

# Guards that turn a statement round or bound it: beside one, nothing at all may be left out.
STRICT = _words(
    "!not !never !without !none !nothing !nobody !nowhere !neither !nor !hardly !barely !rarely !scarcely !unable "
    "!fail !lack !avoid !prevent !refuse !reject !forbid !deny !unlike !instead !except !unless !if !only !merely "
    "!all !any !most !always !than !too !impossible !unlikely !wrong !false !myth"
)

# Said before a clause, these make it no statement of the book.
DOUBTS = _words("!wrong !false !myth !supposed !unlikely !likely !perhaps !maybe !probably !impossible")

# Guards that a claim may lose, because the rest says less without them.
LOSABLE = _words("!exactly !all")
# Guards that a claim may add, because it says less with them.
ADDABLE = _words("can")
# May be left out wherever they stand, because the rest says less without them.
DROPPABLE = _words(
    "again already even ever still quite very rather easily quickly slowly directly fully really truly clearly "
    "carefully properly effectively efficiently greatly highly strongly closely"
)
NOT_ADVERBS = _words("family assembly supply reply multiply rely fly apply comply imply anomaly early daily weekly")

# One key for words that stand for each other in any sentence: the first of its group. Base forms only.
SYNONYMS = {
    word: group.split()[0]
    for group in (
        "not no",
        "all every each",
        "can could able",
        "may might",
        "because since due",
        "therefore thus hence consequently",
        "although though",
        "about approximately roughly around approx ca circa",
        "usually normally generally typically",
        "often frequently",
        "rarely seldom",
        "via through",
        "use utilize employ",
        "let allow permit enable",
        "contain hold include comprise",
        "begin start commence",
        "several multiple",
        "provide offer supply",
        "show display",
        "create make",
        "ensure guarantee",
        "big large",
        "kind type",
        "quick fast rapid",
        "need require",
        "percent % pct",
        "person people human",
        "modify change alter",
        "obtain get",
        "help assist",
        "specify set",
        "build construct",
        "perform execute run",
        "choose select pick",
        "keep retain",
        "determine decide",
        "m metre meter",
        "mm millimetre millimeter",
        "cm centimetre centimeter",
        "km kilometre kilometer",
        "ms millisecond",
        "s seconds sec",
        "minute minutes",
        "h hour hr",
        "kg kilogram",
        "hz hertz",
        "khz kilohertz",
        "mhz megahertz",
        "ghz gigahertz",
        "kb kilobyte",
        "mb megabyte",
        "gb gigabyte",
        "behaviour behavior",
        "centre center",
        "grey gray",
        "catalogue catalog",
        "like e.g",
    )
    for word in group.split()
}
# Words that deny each other, base forms: where the evidence has one, a claim with the other says the opposite.
OPPOSITES = (
    "enable disable, allow block, increase decrease, increase reduce, raise lower, rise fall, maximum minimum, high "
    "low, big small, start stop, begin end, open close, add remove, add subtract, create delete, create destroy, "
    "build destroy, mutable immutable, synchronous asynchronous, same different, public private, internal external, "
    "required optional, mandatory optional, static dynamic, success failure, succeed fail, pass fail, true false, "
    "read write, client server, input output, local remote, new old, newer older, fast slow, include exclude, upper "
    "lower, left right, horizontal vertical, simple complex, easy difficult, easy hard, automatic manual, "
    "automatically manually, accept reject, accept decline, positive negative, great small, long short, single "
    "multiple, temporary permanent, early late, earlier later, safe dangerous, strong weak, good bad, better worse, "
    "best worst, explicit implicit, gain lose, win lose, first last, north south, northern southern, east west, "
    "eastern western, male female, man woman, young old, hot cold, warm cool, buy sell, import export, parent "
    "child, absent present, empty full, majority minority, front back, rich poor, attack defend, top bottom, heavy "
    "light, hard soft, wide narrow, deep shallow, ancient modern, urban rural, common rare, join leave, arrive "
    "depart, enter leave, support oppose, approve deny, expand shrink, improve worsen, primary secondary, major "
    "minor, upstream downstream, ascending descending, send receive, push pull, forward backward, connect "
    "disconnect, load unload, lock unlock, encrypt decrypt, encode decode"
)
NEGATING = ("un", "in", "im", "ir", "il", "dis", "non", "de", "mis")  # before a word, these turn it round

# Written to a number without a space, these are its unit.
UNITS = _words("m mm cm km s ms us ns min h kg g hz khz mhz ghz kb mb gb tb kib mib gib v w a k px fps rpm x")

IRREGULAR = {
    form: base
    for base, forms in {
        "send": "sent",
        "run": "ran",
        "keep": "kept",
        "hold": "held",
        "make": "made making",
        "build": "built",
        "write": "wrote written",
        "give": "gave given",
        "begin": "began begun beginning",
        "choose": "chose chosen",
        "find": "found",
        "lose": "lost",
        "take": "took taken",
        "get": "got gotten getting",
        "become": "became",
        "come": "came",
        "go": "went gone goes",
        "know": "knew known",
        "leave": "left leaves",
        "mean": "meant",
        "meet": "met",
        "put": "putting",
        "read": "reading",
        "rise": "rose risen",
        "say": "said",
        "see": "saw seen",
        "set": "setting",
        "show": "shown",
        "speak": "spoke spoken",
        "spend": "spent",
        "stand": "stood",
        "tell": "told",
        "think": "thought",
        "understand": "understood",
        "wear": "wore worn",
        "break": "broke broken",
        "bring": "brought",
        "buy": "bought",
        "draw": "drew drawn",
        "drive": "drove driven",
        "fall": "fell fallen",
        "grow": "grew grown",
        "hear": "heard",
        "lead": "led",
        "let": "letting",
        "lie": "lay lain lying",
        "teach": "taught",
        "do": "done",
        "use": "using used uses",
        "child": "children",
        "man": "men",
        "woman": "women",
        "axis": "axes",
        "index": "indices indexes",
        "datum": "data",
    }.items()
    for form in forms.split()
}

_CARDINALS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_CARDINALS.split())} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "hundred": "100", "thousand": "1000", "single": "1",
}  # fmt: skip
ORDINAL_WORDS = {word: f"{value}." for value, word in enumerate(_ORDINALS.split())}

# Phrases written as one word before anything else is looked at. Longest first where one begins another.
PHRASES = (
    ("as long as", "if"),
    ("so long as", "if"),
    ("provided that", "if"),
    ("on condition that", "if"),
    ("note that", ""),
    ("in addition", ""),
    ("in particular", ""),
    ("in summary", ""),
    ("in short", ""),
    ("in fact", ""),
    ("not only", ""),
    ("but also", "and"),
    ("as well as", "and"),
    ("in order to", "to"),
    ("so as to", "to"),
    ("have to", "must"),
    ("has to", "must"),
    ("need to", "must"),
    ("needs to", "must"),
    ("is required to", "must"),
    ("are required to", "must"),
    ("it is possible to", "can"),
    ("is able to", "can"),
    ("are able to", "can"),
    ("for example", "like"),
    ("for instance", "like"),
    ("such as", "like"),
    ("because of", "because"),
    ("due to", "because"),
    ("owing to", "because"),
    ("as a result", "therefore"),
    ("make sure", "ensure"),
    ("makes sure", "ensures"),
    ("per cent", "percent"),
    ("in place of", "instead of"),
    ("rather than", "instead of"),
    ("at the same time", "simultaneously"),
    ("prior to", "before"),
    ("even if", "even when"),
)

# What a clause may begin with when its subject stands in the clause before it.
AUXILIARIES = _words(
    "is are was were be been has have had do does did can cannot could may might must should will would shall can't "
    "don't doesn't isn't aren't won't never not"
)
VERBS = _words(
    "accept access achieve act adapt add adjust affect agree align allow answer appear apply arrive ask assign assume "
    "attach avoid become begin behave belong block break bring build calculate call cancel carry cause check choose "
    "clamp clear click close collect combine come compare compile complete compute configure connect consider consist "
    "contain continue control convert copy correct count cover create decide declare define delete deliver depend "
    "derive describe detect determine disable discard display distribute divide do download drift drive drop emit "
    "enable encode end ensure enter establish estimate evaluate execute exist expect explain export expose extend "
    "fail fall fetch fill filter find finish fit fix follow forget form generate get give go grow guarantee halt "
    "handle hang happen help hide hold identify ignore implement import improve include increase indicate inform "
    "inherit install integrate interact introduce invoke iterate join keep know lack last launch lead learn leave let "
    "lie limit list listen load look lose maintain make manage map match matter mean measure merge modify monitor "
    "mount move name need notice notify obey observe obtain occupy occur offer omit open operate output overshoot "
    "overwrite pass perform place plan play point prefer prevent print proceed process produce protect prove provide "
    "publish pull push put query raise reach react read receive recommend record reduce refer refuse register reject "
    "release rely remain remove rename repeat replace report represent request require reserve reset resolve respond "
    "rest restart restore return reuse rotate run save say scan schedule see select send serve set share show sleep "
    "slow solve specify spill spin split stand start state stay steer stop store subscribe suit supply support "
    "survive switch sync take tell terminate test throw track train transform treat trigger try turn update upgrade "
    "use validate vary verify wait want warn weigh work wrap write yield"
)

# Free prepositions that stand for each other; any other two before the same word make two claims.
LOOSE = ("of for", "of in", "of on", "in on", "in at", "to for", "on at", "with of")
PAST = _words("was were had did")
PRESENT = _words("is are am do does has have will")

PREPOSITIONS = _words(
    "in on at for with without by from to of under over during after before within inside outside among between "
    "through via despite unlike like per against across contrary according given as instead besides until since"
)
# A clause that begins so binds the one beside it: what it says holds only then or there.
CONDITIONS = _words(
    "if unless when whenever where wherever until except only provided assuming once while after before without "
    "otherwise whether during not never rarely sometimes"
)
RELATIVES = _words("which that who whose whom")
# Words that give a reason or an example: a clause that begins so may be left out.
ASIDES = _words("because since so like including e.g i.e therefore although though thus hence")
DETERMINERS = _words("a an the this that these those its their his her our your my each every any all some no both")
# With these at its head a statement speaks of something named before it: the subject of the sentence before, or more.
PRONOUNS = _words("it its they their he she his her")
POINTERS = PRONOUNS | _words("them theirs him this these those that such both former latter reverse same")
