"""Every figure by name; each is a function of distributions or arrays and returns its axes or figure."""

from __future__ import annotations

from radii.report.box_plots import class_boxes, network_boxes, split_boxes, target_boxes
from radii.report.curves import ecdf, guarantee_convergence, robust_accuracy_curve, time_cdf
from radii.report.heat_maps import ks_heat_map, spearman_heat_map, target_heat_map
from radii.report.histograms import histogram, lognormal_fit, qq_plot
from radii.report.pictures import Fooled, fooled_grid
from radii.report.scatter_plots import instance_scatter, paired_scatter, trade_off
from radii.report.style import FORMATS, PALETTE, Look, Looks, looks, new_figure, save

__all__ = [
    "FORMATS",
    "PALETTE",
    "Fooled",
    "Look",
    "Looks",
    "class_boxes",
    "ecdf",
    "fooled_grid",
    "guarantee_convergence",
    "histogram",
    "instance_scatter",
    "ks_heat_map",
    "lognormal_fit",
    "looks",
    "network_boxes",
    "new_figure",
    "paired_scatter",
    "qq_plot",
    "robust_accuracy_curve",
    "save",
    "spearman_heat_map",
    "split_boxes",
    "target_boxes",
    "target_heat_map",
    "time_cdf",
    "trade_off",
]
