-- The tables that the two demo sites share, with the same rows at both: the common history they start from.
SET ROLE concord_installer;

CREATE TABLE public.airlines (
    carrier text PRIMARY KEY,
    name    text NOT NULL
);

CREATE TABLE public.flights (
    flight_date     date    NOT NULL,
    carrier         text    NOT NULL REFERENCES public.airlines,
    flight          integer NOT NULL,
    origin          text    NOT NULL,
    dest            text    NOT NULL,
    departure_delay integer,
    cancelled       boolean NOT NULL DEFAULT false,
    PRIMARY KEY (flight_date, carrier, flight, origin)
);

INSERT INTO public.airlines VALUES
    ('AA', 'American Airlines Inc.'),
    ('B6', 'JetBlue Airways'),
    ('DL', 'Delta Air Lines Inc.'),
    ('UA', 'United Air Lines Inc.');

INSERT INTO public.flights VALUES
    ('2013-01-01', 'UA', 1545, 'EWR', 'IAH', 2),
    ('2013-01-01', 'UA', 1714, 'LGA', 'IAH', 4),
    ('2013-01-01', 'AA', 1141, 'JFK', 'MIA', 2),
    ('2013-01-01', 'B6', 725, 'JFK', 'BQN', -1),
    ('2013-01-01', 'DL', 461, 'LGA', 'ATL', -6),
    ('2013-01-01', 'UA', 1696, 'EWR', 'ORD', -4),
    ('2013-01-01', 'B6', 507, 'EWR', 'FLL', -5),
    ('2013-01-01', 'AA', 301, 'LGA', 'ORD', -2);
